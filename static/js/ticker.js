// A worker that ticks twice a second: in a tab that nobody sees, browsers slow the timers of the page itself.

setInterval(() => self.postMessage(null), 500);
