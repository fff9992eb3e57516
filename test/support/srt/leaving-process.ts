import { pino } from 'pino';
import { SrtListener } from '../../../src/protocols/srt/listener.ts';
import { SrtRuntime } from '../../../src/protocols/srt/runtime.ts';

/** A server that exits, as after a fault, while a caller waits for its answer: the message tells the port to call. */
const log = pino({ level: 'silent' });
const EXIT_CODE = 3;
let calls = 0;
const listener = new SrtListener(SrtRuntime.open(log), {
  host: '127.0.0.1',
  port: 0,
  options: [],
  log,
  connection: () => {},
  refuse: () => {
    if (++calls === 1) setImmediate(leave);
    return 1404;
  },
});
process.send?.(listener.port);

function leave(): void {
  // the next caller has called by then
  const end = performance.now() + 1000;
  while (performance.now() < end);
  process.exit(EXIT_CODE);
}
