/**
 * A node in a process of its own, to be stopped and killed: `cluster-child.ts <redis url> <id> <key> <timing> <silence> <port>`. It
 * holds the key and acts on it all the time; says `act <fence> <time>` for each act and `lost` when it hears of its loss.
 */
import type { RedisClusterOptions } from '#cluster';
import { openNode, SECRET } from './cluster.ts';

const [url = '', id = '', key = '', timing = '{}', silence, port = '0'] = process.argv.slice(2);
const say = (line: string): boolean => process.stdout.write(`${line}\n`);

const cluster = await openNode(
  { teardown: () => {} },
  id,
  { url },
  {
    timing: JSON.parse(timing) as RedisClusterOptions['timing'],
    port: { host: '127.0.0.1', port: Number(port), secrets: [SECRET] },
  },
);
const claim = await cluster.claim(key, id, { silence: silence === 'continue' ? 'continue' : 'stop' });
if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
const { lease } = claim;
lease.signal.addEventListener('abort', () => say('lost'));
// what a process was about to do when it was stopped it does first when it goes on
setInterval(() => {
  // taken before, so that the key was certainly held then
  const at = process.hrtime.bigint();
  if (lease.valid) say(`act ${lease.fence} ${at}`);
}, 2);
