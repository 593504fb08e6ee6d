from ringleaf.core.ethernet import group_mac


def test_group_addresses_keep_the_lowest_23_bits() -> None:
    """RFC 1112, 6.4: 239.190.224.7 is 01:00:5e:3e:e0:07, as its second byte loses its first bit."""
    assert group_mac(239 << 24 | 190 << 16 | 224 << 8 | 7) == 0x01005E3EE007
