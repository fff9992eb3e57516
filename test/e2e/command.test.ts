import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Kiln, serverXml, type KilnOptions, type KilnPorts } from '../support/server/kiln.ts';
import { clusterXml } from '../support/server/nodes.ts';
import { freePorts } from '../support/network/ports.ts';
import { until } from '../support/time/until.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Whom no folder lets in by his rights: root is let in everywhere. */
const NOBODY = process.getuid?.() === 0 ? 65534 : undefined;

/** Runs the server's command until it ends by itself. */
function run(args: readonly string[], env: NodeJS.ProcessEnv = {}, uid?: number) {
  return new Promise<{ code: number | string | null | undefined; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env: { ...process.env, ...env }, uid }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code, stdout, stderr });
    });
  });
}

test.serial('--version and --help print and end', async (t) => {
  const version = await run(['--version']);
  t.is(version.code, 0);
  t.regex(version.stdout, /^Kiln \d+\.\d+\.\d+ \(v\d+\.\d+\.\d+-\d+-g[0-9a-f]{7,}\)\n$/);
  const help = await run(['--help']);
  t.is(help.code, 0);
  for (const option of ['--config', '--demo', '--check', '--version']) t.true(help.stdout.includes(option));
});

test.serial('an unknown option ends with 2 and names it', async (t) => {
  const { code, stderr } = await run(['--nonsense']);
  t.is(code, 2);
  t.true(stderr.includes('--nonsense'));
});

test.serial('--check takes the samples and refuses a wrong value in one line', async (t) => {
  for (const sample of ['config/Server.xml', 'config/minimal.xml', 'config/transcode.xml']) {
    const { code, stdout } = await run(['--check', '--config', sample]);
    t.is(code, 0);
    t.is(stdout, `${sample} is valid\n`);
  }
  const folder = await mkdtemp(join(tmpdir(), 'kiln-check-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'Server.xml');
  const xml = serverXml({ rtmp: 1935, http: 3333, api: 8081, ice: [10000, 10001] });
  await writeFile(file, xml.replace('<Port>1935</Port>', '<Port>many</Port>'));
  for (const args of [['--check'], []]) {
    const { code, stderr } = await run([...args, '--config', file]);
    t.is(code, 2);
    t.is(stderr.split('\n').length, 2, stderr);
    t.true(stderr.startsWith(`${file}: Server/Bind/Providers/RTMP/Port:`), stderr);
    t.true(stderr.includes('"many"'));
  }
});

test.serial('a cluster does not start without its secret or without an access token', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-check-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'Server.xml');
  const ports = { rtmp: 1935, http: 3333, api: 8081, ice: [10000, 10001] } as const;
  await writeFile(
    file,
    serverXml(ports, {
      server: clusterXml({ url: 'redis://127.0.0.1:1' }, 'n', 7946, { secret: '${env:KILN_CLUSTER_SECRET}' }),
    }),
  );
  const secret = await run(['--config', file], { KILN_ACCESS_TOKEN: 't', KILN_CLUSTER_SECRET: '' });
  t.is(secret.code, 2);
  t.is(
    secret.stderr,
    `${file}: Server/Cluster/Secret: "" is not a text of at least one character (the environment variable KILN_CLUSTER_SECRET is empty)\n`,
  );
  const token = await run(['--config', file], { KILN_ACCESS_TOKEN: '', KILN_CLUSTER_SECRET: 's' });
  t.is(token.code, 2);
  t.is(
    token.stderr,
    `${file}: Server/Managers/API/AccessToken: is empty: a cluster needs one, the same on every node (the environment variable KILN_ACCESS_TOKEN is empty)\n`,
  );
});

test.serial('a wrong environment ends with 2 and one line that says what is wrong', async (t) => {
  const level = await run([], { KILN_LOG_LEVEL: 'loud' });
  t.is(level.code, 2);
  t.is(level.stderr, 'KILN_LOG_LEVEL: "loud" is not one of trace, debug, info, warn, error, fatal, silent\n');
  const demo = await run(['--demo'], { KILN_FFMPEG: '/nowhere/ffmpeg' });
  t.is(demo.code, 2);
  t.regex(demo.stderr, /^--demo: KILN_FFMPEG is no ffmpeg that runs: .*\n$/);
});

test.serial('a missing file is a wrong configuration', async (t) => {
  const { code, stderr } = await run(['--config', '/nowhere/Server.xml']);
  t.is(code, 2);
  t.true(stderr.includes('/nowhere/Server.xml'));
});

test.serial('a storage that cannot be written ends the start with one line that names it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-readonly-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const [rtmp, http, api, ice, ice2] = freePorts(5) as [number, number, number, number, number];
  const file = join(folder, 'Server.xml');
  await writeFile(file, serverXml({ rtmp, http, api, ice: [ice, ice2] }));
  await chmod(folder, 0o555);
  const { code, stderr } = await run(['--config', file], { KILN_ACCESS_TOKEN: 'x' }, NOBODY);
  t.is(code, 1);
  t.regex(stderr, /^Kiln could not start: \/.*config\.json: EACCES.*\n$/);
});

test.serial(
  'a port in use ends the start with one line that names its element, and leaves nothing running',
  async (t) => {
    const [port] = freePorts(1) as [number];
    const tcp = createServer().listen(port, '127.0.0.1');
    const udp = createSocket('udp4').bind(port, '127.0.0.1');
    await Promise.all([once(tcp, 'listening'), once(udp, 'listening')]);
    t.teardown(() => tcp.close());
    t.teardown(() => udp.close());
    const folder = await mkdtemp(join(tmpdir(), 'kiln-busy-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const file = join(folder, 'Server.xml');
    const cases: readonly [element: string, change: (ports: KilnPorts) => readonly [KilnPorts, KilnOptions]][] = [
      ['Bind/Providers/RTMP/Port', (ports) => [{ ...ports, rtmp: port }, {}]],
      ['Bind/Publishers/LLHLS/Port', (ports) => [{ ...ports, http: port }, {}]],
      ['Bind/Managers/API/Port', (ports) => [{ ...ports, api: port }, {}]],
      [
        'Bind/Publishers/WebRTC/IceCandidates/IceCandidate[1]',
        (ports) => [{ ...ports, ice: [port, ports.ice[1]] }, {}],
      ],
      ['Bind/Providers/SRT/Port', (ports) => [{ ...ports, srt: port }, { srt: {} }]],
      [
        'Bind/Providers/MPEGTS/Port',
        (ports) => [
          ports,
          {
            bindProviders: `<MPEGTS><Port>${port}/udp</Port></MPEGTS>`,
            providers: `<MPEGTS><StreamMap><Stream><Name>s</Name><Port>${port}/udp</Port></Stream></StreamMap></MPEGTS>`,
          },
        ],
      ],
    ];
    for (const [element, change] of cases) {
      const [rtmp, http, api, ice, ice2, srtPlay] = freePorts(6) as [number, number, number, number, number, number];
      const [ports, options] = change({ rtmp, http, api, ice: [ice, ice2], srtPlay });
      await writeFile(file, serverXml(ports, { ...options, storage: folder }));
      const { code, stderr } = await run(['--config', file], { KILN_ACCESS_TOKEN: 'x' });
      t.is(code, 1, element);
      const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{"level":"info"'));
      const isUdp = !/RTMP|LLHLS|API/.test(element);
      t.deepEqual(lines, [
        `Kiln could not start: ${element}: 127.0.0.1:${port}${isUdp ? '/udp' : ''} is in use by another program`,
      ]);
    }
  },
);

test.serial('a media worker that cannot run here ends the start', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-worker-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const [rtmp, http, api, ice, ice2] = freePorts(5) as [number, number, number, number, number];
  const file = join(folder, 'Server.xml');
  await writeFile(file, serverXml({ rtmp, http, api, ice: [ice, ice2] }, { storage: folder }));
  const missing = join(folder, 'worker');
  for (const [program, reason] of [
    [missing, `Kiln could not start: spawn ${missing} ENOENT`],
    ['/bin/false', 'the media worker cannot run here: /bin/false has ended with code 1'],
    ['/bin/true', 'the media worker cannot run here: /bin/true has ended with code 0'],
  ] as const) {
    const { code, stderr } = await run(['--config', file], { KILN_ACCESS_TOKEN: 'x', MEDIASOUP_WORKER_BIN: program });
    t.is(code, 1, program);
    t.true(stderr.includes(reason), stderr);
  }
});

test.serial('a second server on the same files says which file, and which process uses it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-second-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const first = await Kiln.start({ storage: folder });
  t.teardown(() => first.stop());
  const [rtmp, http, api, ice, ice2] = freePorts(5) as [number, number, number, number, number];
  const file = join(folder, 'Server.xml');
  await writeFile(file, serverXml({ rtmp, http, api, ice: [ice, ice2] }, { storage: folder }));
  const { code, stderr } = await run(['--config', file], { KILN_ACCESS_TOKEN: 'x' });
  t.is(code, 1);
  t.is(
    stderr,
    `Kiln could not start: ${join(folder, 'config.json')}: another Kiln server is running with this file (process ${first.pid})\n`,
  );
});

test.serial('--check counts warnings and names what was probably meant', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-check-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'Server.xml');
  const ports = { rtmp: 1935, http: 3333, api: 8081, ice: [10000, 10001] } as const;
  await writeFile(file, serverXml(ports, { publishers: '<LLHSL/>', modules: '<P2P><Enable/></P2P>' }));
  const { code, stdout } = await run(['--check', '--config', file]);
  t.is(code, 0);
  const lines = stdout.trimEnd().split('\n');
  t.regex(lines[0] ?? '', /^warning: .*Publishers: unknown element LLHSL at line \d+: did you mean LLHLS\?$/);
  t.is(lines.at(-1), `${file} is valid, 2 warnings`);
});

test.serial('a generated token is printed once and works; a given one is never printed', async (t) => {
  const generated = await Kiln.start({ env: { KILN_ACCESS_TOKEN: undefined } });
  t.teardown(() => generated.stop());
  const token = await until('the token is told', () => /kiln:[0-9a-f]{32}/.exec(generated.stdout)?.[0]);
  const answer = await fetch(`http://127.0.0.1:${generated.ports.api}/v1/version`, {
    headers: { authorization: `Basic ${Buffer.from(token).toString('base64')}` },
  });
  t.is(answer.status, 200);
  t.false(generated.log.includes(token));

  const given = await Kiln.start({ env: { KILN_ACCESS_TOKEN: 'a-secret-token' } });
  t.teardown(() => given.stop());
  t.false(given.stdout.includes('a-secret-token') || given.log.includes('a-secret-token'));
});

test.serial('SIGTERM ends it with 0 and frees its ports', async (t) => {
  const kiln = await Kiln.start();
  kiln.signal('SIGTERM');
  t.is(await kiln.exited(), 0);
  await t.throwsAsync(fetch(kiln.httpUrl('/')));
  await kiln.stop();
});

test.serial(
  'SIGTERM notifies viewers on a WebSocket that the server goes away, and does not wait for them',
  async (t) => {
    const kiln = await Kiln.start();
    t.teardown(() => kiln.stop());
    const socket = new WebSocket(kiln.httpUrl('/app/stream').replace('http', 'ws'));
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', reject);
    });
    const closed = new Promise<number>((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)));
    kiln.signal('SIGTERM');
    t.is(await closed, 1001);
    t.is(await kiln.exited(), 0);
  },
);
