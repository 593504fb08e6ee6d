"""No congestion control: the window is constant, and lost packets are sent again."""

from ringleaf.hosts.congestion.control import Controller

CONTROLLER = Controller("fixed", is_open=True)
