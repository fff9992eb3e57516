import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { findProgram } from '../../../deploy/cluster/program.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { configOf, LEAST, read, ROOT, srtPorts, STOP_S } from '../../unit/deploy/support.ts';
import { writeScript } from '../../support/programs/script.ts';

const run = promisify(execFile);
const SERVICE = read('deploy/kiln@.service');
const DOCKERFILE = read('deploy/Dockerfile');

/** Values of a setting of the unit. */
const setting = (name: string): string[] =>
  [...SERVICE.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

// Skipped, and shown as such, where there is no systemd to ask.
const ofSystemd = spawnSync('systemd-analyze', ['--version']).status === 0 ? test : test.skip;

ofSystemd('systemd takes the unit', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-unit-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'kiln@node-1.service');
  writeFileSync(file, SERVICE.replaceAll('/opt/kiln', ROOT));
  const { stderr } = await run('systemd-analyze', ['verify', '--man=no', file]);
  t.is(stderr, '');
  writeFileSync(file, SERVICE.replaceAll('/opt/kiln', '/nowhere'));
  await t.throwsAsync(run('systemd-analyze', ['verify', '--man=no', file]), { message: /nowhere/ });
});

ofSystemd('systemd takes the unit of the relay', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-unit-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'kiln-turn.service');
  writeFileSync(file, read('deploy/kiln-turn.service').replaceAll('/opt/kiln', ROOT));
  const { stderr } = await run('systemd-analyze', ['verify', '--man=no', file]);
  t.is(stderr, '');
});

test('the TURN relay says which settings it lacks', async (t) => {
  const env = { PATH: process.env.PATH };
  const start = (more: object) => run(join(ROOT, 'deploy/coturn/start'), [], { env: { ...env, ...more } });
  await t.throwsAsync(start({ KILN_TURN_PEERS: '192.0.2.1' }), { message: /KILN_TURN_SECRET: the secret/ });
  await t.throwsAsync(start({ KILN_TURN_SECRET: 'x' }), { message: /KILN_TURN_PEERS: the addresses/ });
});

/** System calls of a set such as `@system-service`, and of those in it. */
async function systemCalls(set: string): Promise<string[]> {
  const { stdout } = await run('systemd-analyze', ['syscall-filter', set]);
  const names = stdout
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  return (
    await Promise.all(names.map((name) => (name.startsWith('@') ? systemCalls(name) : Promise.resolve([name]))))
  ).flat();
}

ofSystemd('the unit lets Node have memory protection keys, and kills nobody for a system call', async (t) => {
  const [allowed = '', removed = '', ...more] = setting('SystemCallFilter');
  t.deepEqual(more, []);
  t.regex(removed, /^~/);
  const calls = new Set((await Promise.all(allowed.split(' ').map(systemCalls))).flat());
  for (const call of await systemCalls(removed.slice(1))) calls.delete(call);
  // V8 keeps its code from being written to with them, on processors that have them
  for (const call of ['pkey_alloc', 'pkey_free', 'pkey_mprotect']) t.true(calls.has(call), call);
  for (const call of ['setuid', 'chroot', 'mount']) t.false(calls.has(call), call);
  t.deepEqual(setting('SystemCallErrorNumber'), ['EPERM']);
});

test('the unit leaves a node the time to drain, alone, and starts what there is', async (t) => {
  const { cluster } = await configOf(t, LEAST);
  const drain = (cluster?.node.drainTimeout ?? Infinity) / 1000;
  t.true(Number(setting('TimeoutStopSec')[0]) > drain + STOP_S);
  t.deepEqual(setting('KillMode'), ['mixed'], 'encoders get no signal before the node has stopped');
  t.deepEqual(setting('DynamicUser'), ['yes']);
  t.deepEqual(setting('EnvironmentFile'), ['/etc/kiln/kiln.env', '-/etc/kiln/%i.env']);
  const [program = '', ...args] = (setting('ExecStart')[0] ?? '').split(' ');
  t.true(existsSync(program.replace('/opt/kiln', ROOT)));
  t.deepEqual(args, ['--config', 'config/cluster.xml']);
});

/** Runs deploy/drain against an API that answers with a status; tells what it waited, once that was answered. */
async function drain(t: ExecutionContext, status: number) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-drain-'));
  const waited = join(folder, 'waited');
  writeScript(join(folder, 'sleep'), `echo "$@" >"${waited}"`);
  const asked: string[] = [];
  const api = createServer(({ method, url, headers }, response) => {
    asked.push(`${method} ${url} ${headers.authorization}`);
    response.writeHead(status).end('as it is');
  }).listen(0, '127.0.0.1');
  t.teardown(() => {
    api.close();
    rmSync(folder, { recursive: true });
  });
  await once(api, 'listening');
  const { port } = api.address() as AddressInfo;
  const env = {
    ...process.env,
    PATH: `${folder}:${process.env.PATH}`,
    KILN_NODE_ID: 'a/b',
    KILN_API_PORT: `${port}`,
    KILN_ACCESS_TOKEN: 'u:p',
  };
  const result = await run(join(ROOT, 'deploy/drain'), ['7'], { env }).then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );
  t.deepEqual(asked, [`POST /v1/cluster/nodes/a%2Fb:drain Basic ${Buffer.from('u:p').toString('base64')}`]);
  return { ...result, waited: existsSync(waited) && readFileSync(waited, 'utf8').trim() };
}

// alone: the script gives the API, which is this thread, five seconds
test.serial('deploy/drain drains and waits', async (t) => {
  t.deepEqual(await drain(t, 200), { code: 0, stderr: '', waited: '7' });
});

test.serial('deploy/drain waits for balancers when the node cannot be drained, and says so then', async (t) => {
  const { code, stderr, waited } = await drain(t, 503);
  t.is(waited, '7');
  t.is(code, 1);
  t.regex(stderr, /is answered 503: as it is/);
});

test('HAProxy takes its file', async (t) => {
  // told where the nodes are, it has nothing to remark at all
  const env = Object.fromEntries(
    ['RTMP', 'HTTP', 'API', 'OVT'].flatMap((kind) =>
      [1, 2, 3].map((node) => [`KILN_NODE_${node}_${kind}`, `127.0.0.1:${node}`]),
    ),
  );
  const check = (file: string) => run(findProgram('haproxy'), ['-c', '-f', file], { env: { ...process.env, ...env } });
  t.is((await check(join(ROOT, 'deploy/haproxy.cfg'))).stderr, '');
  await t.throwsAsync(check(join(ROOT, 'deploy/Dockerfile')));
});

for (const name of ['nginx-srt', 'nginx-cache']) {
  test(`nginx takes ${name}.conf`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'kiln-nginx-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'nginx.conf');
    // it looks names up when it reads them
    const text = read(`deploy/${name}.conf`)
      .replaceAll(/node-\d:/g, '127.0.0.1:')
      .replaceAll(/\/run\/|\/var\/cache\/nginx\//g, `${folder}/`);
    const check = (conf: string) => {
      writeFileSync(file, conf);
      return run(findProgram('nginx'), ['-t', '-c', file]);
    };
    t.regex((await check(text)).stderr, /test is successful/);
    await t.throwsAsync(check(text.replace('upstream', 'upstreams')), { message: /upstreams/ });
  });
}

test('promtool takes what Prometheus is started with, whatever the token is', async (t) => {
  const check = (token: string) =>
    run(join(ROOT, 'deploy/prometheus/start'), ['check'], {
      env: {
        PATH: process.env.PATH,
        KILN_ACCESS_TOKEN: token,
        KILN_NODES: 'node-1:8081,node-2:8081',
        KILN_SETTINGS: join(ROOT, 'grafana/prometheus'),
      },
    });
  t.regex((await check("k'i|l&n\\1:a:b")).stdout, /is valid prometheus config file syntax[^]*\d+ rules found/);
  await t.throwsAsync(check('no-user'), { message: /not user:password/ });
});

test("the image's worker is made of mediasoup's part of the lock file alone", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-lock-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, object> };
  const part = async (packages: Record<string, object>) => {
    writeFileSync(join(folder, 'lock.json'), JSON.stringify({ ...lock, packages }));
    await run(process.execPath, [join(ROOT, 'deploy/lock-part.ts'), 'lock.json', 'mediasoup'], { cwd: folder });
    return readFileSync(join(folder, 'mediasoup/package-lock.json'), 'utf8');
  };
  const made = await part(lock.packages);
  const { packages } = JSON.parse(made) as { packages: Record<string, { dependencies?: object }> };
  t.deepEqual(packages['node_modules/mediasoup'], lock.packages['node_modules/mediasoup']);
  for (const one of Object.values(packages)) {
    for (const name of Object.keys(one.dependencies ?? {})) t.true(`node_modules/${name}` in packages, name);
  }
  t.false('node_modules/fastify' in packages);
  t.is(await part({ ...lock.packages, 'node_modules/fastify': { version: '99.0.0' } }), made);
  const mediasoup = { ...lock.packages['node_modules/mediasoup'], version: '99.0.0' };
  t.not(await part({ ...lock.packages, 'node_modules/mediasoup': mediasoup }), made);
});

test('the image is made of what there is, by a user without rights', (t) => {
  const ignored = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  t.is(ignored[0], '*');
  const taken = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  const sources = [...DOCKERFILE.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '));
  t.true(sources.length > 8);
  for (const source of sources) {
    t.true(existsSync(join(ROOT, source)), source);
    t.true(taken.includes(source.split('/')[0] as string), `${source} is sent to the builder`);
  }
  t.regex(DOCKERFILE, /^USER 10001:10001$/m);
  t.regex(DOCKERFILE, /^HEALTHCHECK /m);
});

test('files that the image removes from packages exist, and none that it needs is among them', (t) => {
  const [, removed = ''] = /^RUN npm prune [^]*?rm -rf ([^&]*)&&/m.exec(DOCKERFILE) ?? [];
  const patterns = removed.split(/[\s\\]+/).filter((pattern) => pattern !== '');
  t.true(patterns.length > 3);
  const gone = patterns.flatMap((pattern) => {
    const found = globSync(pattern, { cwd: ROOT });
    // of the optional ones some are not made for this processor
    if (!/ffmpeg/.test(pattern)) t.not(found.length, 0, pattern);
    return found;
  });
  for (const kept of ['.bin/node', 'hls.js/dist/hls.min.mjs', 'mediasoup/package.json', 'koffi/package.json'])
    t.false(
      gone.some((path) => `node_modules/${kept}`.startsWith(path)),
      kept,
    );
});

test('the samples keep in the image what they keep, wherever they are', async (t) => {
  const [, storage = ''] = /^ENV .*KILN_STORAGE=(\S+)/m.exec(DOCKERFILE) ?? [];
  t.true(DOCKERFILE.includes(`install -d -o kiln -g kiln -m 700 ${storage}\n`));
  for (const sample of ['Server.xml', 'cluster.xml']) {
    const { config } = await loadConfig(join(ROOT, 'config', sample), { env: { ...LEAST, KILN_STORAGE: storage } });
    t.is(config.managers?.api.storage.path, storage, sample);
  }
});

test('the image exposes the ports of its configuration', async (t) => {
  const { bind, cluster } = await configOf(t, LEAST);
  const { first, last } = bind.publishers.webrtc?.iceCandidates.iceCandidate[0] ?? {};
  const [, exposed] = /^EXPOSE (.*)$/m.exec(DOCKERFILE) ?? [];
  t.is(
    exposed,
    [
      bind.providers.rtmp?.port,
      bind.publishers.llhls?.port,
      bind.managers.api?.port,
      cluster?.node.port,
      bind.publishers.ovt?.port,
      ...srtPorts(bind).map((port) => `${port}/udp`),
      `${first}-${last}/tcp`,
      `${first}-${last}/udp`,
    ].join(' '),
  );
});
