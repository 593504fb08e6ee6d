from hypothesis import settings

settings.register_profile("ringleaf", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("ringleaf")
