"""Priority flow control in virtual time: pause frames, and what ports do about them."""
