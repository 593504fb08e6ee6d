"""No congestion control: a window that stays as it is, and losses are sent again."""

from ringleaf.hosts.congestion.control import Controller

CONTROLLER = Controller("fixed", is_open=True)
