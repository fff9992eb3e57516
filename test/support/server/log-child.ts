import { createInterface } from 'node:readline';
import { createLogger } from '../../../src/log/log.ts';

/** Logs what it is told on its standard input, as `info 100` or `warn 1`, and answers with its memory in bytes. */
const [format] = process.argv.slice(2) as ['text' | 'json'];
const log = createLogger('info', { format });
const filler = 'x'.repeat(1000);
let number = 0;
createInterface({ input: process.stdin }).on('line', (line) => {
  const [what = '', count = ''] = line.split(' ');
  if (what === 'exit') log.flush(() => process.exit(0));
  for (let n = 0; n < Number(count); n++) log[what as 'info' | 'warn']({ number: ++number, filler }, 'line');
  process.stdout.write(`${process.memoryUsage().rss}\n`);
});
