import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { findProgram } from '../../../deploy/cluster/program.ts';
import { configOf, LEAST, read, ROOT, STOP_S } from './support.ts';

const run = promisify(execFile);
const SERVICE = read('deploy/kiln@.service');
const DOCKERFILE = read('deploy/Dockerfile');

/** Values of a setting of the unit. */
const setting = (name: string): string[] => [...SERVICE.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

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

test('HAProxy takes its file', async (t) => {
  // told where the nodes are, it has nothing to remark at all
  const env = Object.fromEntries(['RTMP', 'HTTP', 'API'].flatMap((kind) =>
    [1, 2, 3].map((node) => [`KILN_NODE_${node}_${kind}`, `127.0.0.1:${node}`])));
  const check = (file: string) => run(findProgram('haproxy'), ['-c', '-f', file], { env: { ...process.env, ...env } });
  t.is((await check(join(ROOT, 'deploy/haproxy.cfg'))).stderr, '');
  await t.throwsAsync(check(join(ROOT, 'deploy/Dockerfile')));
});

test('the image is made of what there is, by a user without rights', (t) => {
  const ignored = read('.dockerignore').split('\n').filter((line) => line !== '' && !line.startsWith('#'));
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

test('the image tells the ports of its configuration', async (t) => {
  const { bind, cluster } = await configOf(t, LEAST);
  const { first, last } = bind.publishers.webrtc?.iceCandidates.iceCandidate[0] ?? {};
  const [, exposed] = /^EXPOSE (.*)$/m.exec(DOCKERFILE) ?? [];
  t.is(exposed, [
    bind.providers.rtmp?.port, bind.publishers.llhls?.port, bind.managers.api?.port, cluster?.node.port,
    `${first}-${last}/tcp`, `${first}-${last}/udp`,
  ].join(' '));
});
