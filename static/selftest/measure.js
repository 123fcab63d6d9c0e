// Measures how server events and frames arrive here. Knows the wire; what the times mean is `verdict`'s business.

const PATIENCE_MS = 10_000;

/** When each of the stream's events came, in ms since it was asked for; fewer where it broke off or stood still. */
export async function eventTimes(url) {
  const [began, times] = [performance.now(), []];
  try {
    const response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    const reader = response.ok ? response.body.pipeThrough(new TextDecoderStream()).getReader() : null;
    for (let part; reader && !(part = await reader.read()).done; ) {
      const num = part.value.split("\n\n").length - 1;
      times.push(...Array(num).fill(performance.now() - began));
    }
  } catch {
    return times; // what came until then says it
  }
  return times;
}

/** Opens the chat's socket and sends `num` pings, one every `everyMs`: { first, trips } in ms. */
export function socketTimes(protocol, num, everyMs) {
  const [began, sent, trips] = [performance.now(), [], []];
  let first = null;
  const ws = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/chat`);
  const ping = () => {
    if (ws.readyState !== WebSocket.OPEN) return;
    sent.push(performance.now());
    ws.send(JSON.stringify({ type: "ping" }));
    if (sent.length < num) setTimeout(ping, everyMs);
  };
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      ws.close();
      resolve({ first, trips });
    };
    const timer = setTimeout(end, PATIENCE_MS);
    ws.onopen = () => ws.send(JSON.stringify({ type: "hello", protocol }));
    ws.onclose = end;
    ws.onmessage = ({ data }) => {
      const { type } = JSON.parse(data);
      if (type === "welcome") {
        first = performance.now() - began;
        ping();
      } else if (type === "pong") trips.push(performance.now() - sent[trips.length]);
      if (trips.length === num) end();
    };
  });
}
