"""The compressors, a file each: its name is the compressor's."""
