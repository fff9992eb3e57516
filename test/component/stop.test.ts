import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { publishPattern } from '../support/ffmpeg.ts';
import { Kiln, serverXml, type KilnOptions } from '../support/kiln.ts';
import { isRunning, processTree } from '../support/load/usage.ts';
import { freePorts } from '../support/ports.ts';
import { until } from '../support/until.ts';
import { ViewerPeer } from '../support/viewer-peer.ts';

const ROOT = join(import.meta.dirname, '../..');
const WARNING_OR_WORSE = /"level":"(warn|error|fatal)"/;

/** A server with a publisher, an encoder and a WebRTC viewer. */
async function busy(t: ExecutionContext, options: KilnOptions = {}): Promise<Kiln> {
  const kiln = await Kiln.start({ ownGroup: true, ...options });
  t.teardown(() => kiln.stop());
  const publisher = publishPattern(kiln.rtmpUrl('live'));
  t.teardown(() => publisher.stop());
  await kiln.liveStream('live');
  const viewer = new ViewerPeer();
  t.teardown(() => viewer.close());
  await viewer.play(kiln.httpUrl('/app/live?direction=whep'));
  await viewer.until(() => viewer.packets.video.length > 0 && viewer.packets.audio.length > 0);
  return kiln;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} to the whole process group ends a busy server in order, without a warning`, async (t) => {
    const kiln = await busy(t);
    const tree = processTree(kiln.pid);
    t.true(tree.length >= 3, 'the server, a media worker and an encoder');
    kiln.signalGroup(signal);
    t.is(await kiln.exited(), 0);
    t.notRegex(kiln.log, WARNING_OR_WORSE);
    await until('its children have ended', () => !tree.some(isRunning));
  });
}

test('no child outlives a server that is killed', async (t) => {
  const kiln = await busy(t, { args: ['--demo'] });
  const tree = await until('the demo is published', () => {
    const found = processTree(kiln.pid);
    return found.length >= 4 && found;
  });
  kiln.signal('SIGKILL');
  await kiln.exited();
  await until('its children have ended', () => !tree.some(isRunning));
  t.false(isRunning(kiln.pid));
});

test('a signal while it starts ends it at once', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-stop-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [rtmp, http, api, ice, ice2] = (await freePorts(5)) as [number, number, number, number, number];
  const file = join(folder, 'Server.xml');
  await writeFile(file, serverXml({ rtmp, http, api, ice: [ice, ice2] }));
  const child = spawn(join(ROOT, 'deploy/start'), ['--config', file], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, KILN_LOG_LEVEL: 'debug' },
  });
  t.teardown(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk));
  let ended = false;
  child.once('close', () => (ended = true));
  await until('it starts', () => log.includes('"msg":"starting"'));
  process.kill(-(child.pid as number), 'SIGINT');
  await until('it has ended', () => ended);
  t.is(child.exitCode, 0);
  t.notRegex(log, WARNING_OR_WORSE);
});

test('a signal while it looks for an ffmpeg to run the demo with ends it in order', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-stop-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [rtmp, http, api, ice, ice2] = (await freePorts(5)) as [number, number, number, number, number];
  const file = join(folder, 'Server.xml');
  await writeFile(file, serverXml({ rtmp, http, api, ice: [ice, ice2] }));
  const slow = join(folder, 'ffmpeg');
  const begun = join(folder, 'begun');
  await writeFile(slow, `#!/bin/sh\necho > ${begun}\nexec sleep 5\n`, { mode: 0o755 });
  const child = spawn(join(ROOT, 'deploy/start'), ['--config', file, '--demo'], {
    stdio: 'ignore',
    env: { ...process.env, KILN_FFMPEG: slow },
  });
  t.teardown(() => child.kill('SIGKILL'));
  let ended = false;
  child.once('close', () => (ended = true));
  await until('it asks the program', () => existsSync(begun));
  child.kill('SIGTERM');
  await until('it has ended', () => ended);
  t.is(child.exitCode, 0);
});

test('a signal while the demo is being started closes the server, which is up already', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-stop-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [rtmp, http, api, ice, ice2] = (await freePorts(5)) as [number, number, number, number, number];
  const file = join(folder, 'Server.xml');
  await writeFile(file, serverXml({ rtmp, http, api, ice: [ice, ice2] }));
  const slow = join(folder, 'ffmpeg');
  const begun = join(folder, 'begun');
  // what the demo tries first is whether text can be drawn
  const real = `exec ${JSON.stringify(process.env.KILN_FFMPEG ?? 'ffmpeg')} "$@"`;
  const script = `#!/bin/sh\ncase "$*" in *drawtext=*) echo > ${begun}; exec sleep 5;; esac\n${real}\n`;
  await writeFile(slow, script, { mode: 0o755 });
  const child = spawn(join(ROOT, 'deploy/start'), ['--config', file, '--demo'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, KILN_FFMPEG: slow },
  });
  t.teardown(() => child.kill('SIGKILL'));
  let [screen, log] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (screen += chunk));
  child.stderr.on('data', (chunk: Buffer) => (log += chunk));
  let ended = false;
  child.once('close', () => (ended = true));
  await until('it tries to draw', () => existsSync(begun));
  child.kill('SIGTERM');
  await until('it has ended', () => ended);
  t.is(child.exitCode, 0);
  t.regex(log, /"signal":"SIGTERM","msg":"stopping; another signal stops at once"/);
  t.notRegex(log, WARNING_OR_WORSE);
  t.is(screen, '');
});

for (const { what, command } of [
  { what: 'the server', command: (config: string) => `exec npm start -- --config ${config} --demo` },
  { what: 'a local cluster', command: () => `exec npm run cluster -- 1 --free-ports` },
]) {
  test(`Ctrl-C in a terminal ends ${what} with code 0 and without a warning`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'kiln-stop-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    const [rtmp, http, api, ice, ice2] = (await freePorts(5)) as [number, number, number, number, number];
    const config = join(folder, 'Server.xml');
    await writeFile(config, serverXml({ rtmp, http, api, ice: [ice, ice2] }));
    const terminal = spawn('script', ['--quiet', '--return', '--flush', '--command', command(config), '/dev/null'], {
      cwd: ROOT,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NO_COLOR: '1', SHELL: '/bin/sh' },
    });
    t.teardown(() => terminal.kill());
    let screen = '';
    terminal.stdout.on('data', (chunk: Buffer) => (screen += chunk));
    let ended = false;
    terminal.once('close', () => (ended = true));
    await until('it is up, and its stream is published', () => {
      if (ended) throw new Error(screen);
      return /Publish/.test(screen) && (what !== 'the server' || /published/.test(screen));
    });
    terminal.stdin.write('\u0003');
    await until('it has ended', () => ended);
    t.is(terminal.exitCode, 0, screen);
    t.notRegex(screen, /\b(WRN|ERR|FTL|WARN|ERROR|FATAL)\b|died|Warning/, screen);
  });
}
