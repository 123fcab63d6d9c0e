// English: what many parts of the page say.

export default {
  "keep": "Keep",
  "delete": "Delete",
  "copy": "Copy",
  "edit": "Edit",
  "send": "Send",
  "stop": "Stop",
  "try_again": "Try again",
  "sign_in": "Sign in",
  "connect_now": "Connect now",
  "dismiss": "Dismiss",
  "ms": "{n} ms",
  "seconds": "{n} s",
  "age.now": "just now",
  "age.minutes": "{n} min old",
  "age.hours": "{n} h old",
  "age.days": "{n} days old",
  "age.days.one": "{n} day old",
};
