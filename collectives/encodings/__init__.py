"""The codecs, a file each: its name is the codec's."""
