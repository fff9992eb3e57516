import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { balancerConfig } from '../../deploy/cluster/balancer.ts';
import { fixedPorts } from '../../deploy/cluster/ports.ts';
import { refuseWarnings } from '../support/programs/node-warnings.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { until, untilWorks } from '../support/time/until.ts';

const ROOT = join(import.meta.dirname, '../..');
const TOKEN = 'of:this-test';

/** What `npm run cluster` runs. */
function run(
  t: ExecutionContext,
  args: readonly string[],
): { readonly child: ChildProcess; readonly output: () => string } {
  const child = spawn(join(ROOT, 'deploy/cluster/start'), args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, KILN_ACCESS_TOKEN: TOKEN },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  t.teardown(() => child.kill('SIGTERM'));
  return { child, output: () => output };
}

test('a local cluster has a stream, and goes when it is stopped, with all its files', async (t) => {
  const { child, output } = run(t, ['2', '--free-ports', '--turn']);
  await until('it tells its addresses', () => {
    if (child.exitCode !== null) throw new Error(output());
    return output().includes('Ctrl-C');
  });
  const find = (pattern: RegExp): string => pattern.exec(output())?.[1] ?? '';
  const api = find(/API +(http\S+)/);
  const get = async (path: string): Promise<string> => {
    const headers = { authorization: `Basic ${Buffer.from(TOKEN).toString('base64')}` };
    return (await fetch(`${api}${path}`, { headers }).catch(() => undefined))?.text() ?? '';
  };
  await until('both nodes are there', async () => /node-1.*node-2/.test(await get('/cluster/nodes')));
  await until('the demo is live', async () => (await get('/vhosts/default/apps/app/streams')).includes('demo'));

  const [, origin = ''] = /List +(http\S+)\//.exec(output()) ?? [];
  const offer = await untilWorks('a player is offered the stream', async () => {
    const signalling = await SignallingClient.open(`${origin.replace('http', 'ws')}/app/demo?transport=relay`);
    t.teardown(() => signalling.socket.terminate());
    signalling.send({ command: 'request_offer' });
    return await signalling.command('offer');
  });
  t.deepEqual(
    (offer.iceServers as { urls: string[] }[]).map(({ urls }) => urls),
    [[`turn:${find(/Relay +([^,\s]+)/)}?transport=tcp`]],
  );

  const caller = new SrtCaller(t);
  await until('it is played over SRT', async () => {
    const player = await caller.call(Number(find(/to play: +srt:\/\/127\.0\.0\.1:(\d+)/)), {
      streamId: find(/to play: .*streamid=(\S+)/),
    });
    return player.refused === 0;
  });

  const incarnations = async (): Promise<string[]> =>
    [...(await get('/cluster/nodes')).matchAll(/"incarnation":"([^"]+)"/g)].map(([, one = '']) => one);
  const before = await incarnations();
  const killed = Number(find(/node-1 +process (\d+)/));
  process.kill(killed, 'SIGKILL');
  const again = await until(
    'the node is started again',
    () => Number(find(/node-1 is started again, as process (\d+)/)) || undefined,
  );
  await until('it is back', async () => {
    const now = await incarnations();
    return now.length === before.length && now.filter((one) => before.includes(one)).length === before.length - 1;
  });

  const folder = find(/logs in (\S+)/);
  for (const node of ['node-1', 'node-2']) refuseWarnings(readFileSync(join(folder, `${node}.log`), 'utf8'));
  const pids = [again, Number(find(/node-2 +process (\d+)/))];
  child.kill('SIGINT');
  const [code] = await once(child, 'exit');
  t.is(code, 0, output());
  t.false(existsSync(folder));
  for (const pid of pids) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

test('wrong arguments of the local cluster are reported in one line', async (t) => {
  for (const args of [['many'], ['0'], ['2', '3'], ['--address', 'here'], ['--address', '0.0.0.0'], ['--nonsense']]) {
    const { child, output } = run(t, args);
    const [code] = await once(child, 'close');
    t.is(code, 2);
    t.regex(output(), /^.*(many|"0"|2 3|here|0\.0\.0\.0|--nonsense).*\n$/);
  }
});

test('deploy/haproxy.cfg is what it is for three nodes, and has lines for any number', (t) => {
  const text = readFileSync(join(ROOT, 'deploy/haproxy.cfg'), 'utf8');
  t.is(balancerConfig(text, 3), text);
  const five = balancerConfig(text, 5);
  t.is(five.match(/server node-5 "\$\{KILN_NODE_5_/g)?.length, 7);
  t.is(five.match(/track http\/node-5$/gm)?.length, 2);
  t.notRegex(balancerConfig(text, 1), /server node-2|NODE_2/);
});

test('no two nodes of a local cluster listen on one port', (t) => {
  const { redis, turn, balancer, nodes } = fixedPorts(9);
  const all = [redis, turn, ...[balancer, ...nodes].flatMap((one) => Object.values(one))];
  t.is(new Set(all).size, all.length);
  t.true(
    all.every((port) => port < 32_768),
    'below those of outgoing connections',
  );
});
