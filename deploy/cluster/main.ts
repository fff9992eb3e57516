import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { parseArgs } from 'node:util';
import { startDemo, type Demo } from '../../src/server/demo.ts';
import { findFfmpeg } from '../../src/ffmpeg.ts';
import { hostInUrl } from '../../src/lib/address.ts';
import { createLogger } from '../../src/log/log.ts';
import { wantsColor } from '../../src/server/summary.ts';
import { LocalCluster } from './cluster.ts';
import { fixedPorts, freePorts } from './ports.ts';

const USAGE = `Redis, nodes of Kiln and HAProxy on this machine, with a test pattern published through the balancer.

  npm run cluster -- [nodes] [options]

  nodes               how many, 1 to 9 (default 3)
  --address ADDRESS   of this machine, to listen on and to be reached at (default 127.0.0.1)
  --turn              also coturn, a relay (TURN) for players that ask for transport=relay
  --free-ports        any free ports instead of the usual ones
  --help              print this and exit

Environment: KILN_ACCESS_TOKEN (else one is made up), KILN_LOG_LEVEL, KILN_FFMPEG.`;

const EVERY = ['0.0.0.0', '::'];
const EXIT_USAGE = 2;
const EXIT_FAILED = 1;
/** npm passes signals of the terminal on, so that one Ctrl-C arrives twice. */
const SAME_SIGNAL_MS = 500;

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        address: { type: 'string', default: '127.0.0.1' },
        turn: { type: 'boolean', default: false },
        'free-ports': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    const [nodes = '3', ...more] = positionals;
    if (!/^[1-9]$/.test(nodes) || more.length > 0)
      throw new Error(`"${positionals.join(' ')}" is not a number of nodes (1..9)`);
    if (isIP(values.address) === 0 || EVERY.includes(values.address)) {
      throw new Error(`--address: "${values.address}" is not an address of this machine`);
    }
    return { ...values, count: Number(nodes) };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(EXIT_USAGE);
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

const options = readArguments();
if (options.help) {
  say(USAGE);
  process.exit(0);
}
const { address, count, turn } = options;
const token = process.env.KILN_ACCESS_TOKEN || `kiln:${randomBytes(16).toString('hex')}`;
const ports = options['free-ports'] ? freePorts(count) : fixedPorts(count);
const cluster = new LocalCluster({
  address,
  ports,
  turn,
  token,
  say: (text) => say(`  ${text}`),
  onBroken: () => void stop(EXIT_FAILED),
});
let demo: Demo | undefined;
let stopping = false;
let lastSignal = -Infinity;

process.once('exit', () => cluster.kill());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted());

function interrupted(): void {
  const now = performance.now();
  if (now - lastSignal < SAME_SIGNAL_MS) return;
  lastSignal = now;
  if (stopping) process.exit(EXIT_FAILED);
  say('\n  stopping');
  void stop(0);
}

async function stop(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  await demo?.close();
  await cluster.close();
  process.exit(code);
}

async function publish(): Promise<Demo> {
  const { path } = await findFfmpeg();
  return await startDemo({
    ip: [address],
    hostNames: ['*'],
    rtmpPort: ports.balancer.rtmp,
    app: 'app',
    stream: 'demo',
    ffmpegPath: path,
    log: createLogger('warn', { format: 'text', color: wantsColor(process.stderr, process.env) }),
  });
}

function summary(): string {
  const origin = (scheme: string, port: number): string => `${scheme}://${hostInUrl(address)}:${port}`;
  const { balancer, nodes } = ports;
  const api = `${origin('http', balancer.api)}/v1`;
  const page = origin('http', balancer.http);
  const call = `curl -u ${token}`;
  const rows = nodes.map(
    (node, index) =>
      `      node-${index + 1}   process ${cluster.pids[index]}, ${origin('http', node.http)}, API ${origin('http', node.api)}/v1`,
  );
  return `
  Kiln, ${count} ${count === 1 ? 'node' : 'nodes'} behind a balancer

    Open     ${page}/app/demo?mode=both
    List     ${page}/
    Publish  ${origin('rtmp', balancer.rtmp)}/app/mystream
    API      ${api}
    Token    ${token}${turn ? `\n    Relay    ${hostInUrl(address)}:${ports.turn}, for ${origin('ws', balancer.http)}/app/demo?transport=relay` : ''}

    SRT      of each node: ${origin('srt', nodes[0]?.srt ?? 0)}?streamid=default/app/mystream
             to play:      ${origin('srt', nodes[0]?.srtPlay ?? 0)}?streamid=default/app/demo

    Nodes
${rows.join('\n')}
      logs in ${cluster.folder}

    Try
      ${call} ${api}/cluster/nodes
      ${call} -X POST ${api}/cluster/nodes/node-1:drain      and node-1:undrain
      kill -9 ${cluster.pids[0]}      node-1 is gone, and back ten seconds later
      kill ${cluster.pids.at(-1)}      node-${count} drains, then stops, and is back

  Ctrl-C stops everything.
`;
}

try {
  await cluster.start();
  demo = await publish();
  say(summary());
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  await stop(EXIT_FAILED);
}
