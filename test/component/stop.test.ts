import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln, serverXml, type KilnOptions } from '../support/server/kiln.ts';
import { isRunning, processTree } from '../support/load/usage.ts';
import { long } from '../support/runner/long.ts';
import { freePorts } from '../support/network/ports.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { writeScript } from '../support/programs/script.ts';

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

/** A configuration of a server with the ports of nobody else, in a folder of its own. */
async function configured(t: ExecutionContext): Promise<{ readonly folder: string; readonly file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-stop-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [rtmp, http, api, ice, ice2] = freePorts(5) as [number, number, number, number, number];
  const file = join(folder, 'Server.xml');
  await writeFile(file, serverXml({ rtmp, http, api, ice: [ice, ice2] }));
  return { folder, file };
}

/** Collects what a program writes, and kills it after the test. */
function watched(t: ExecutionContext, child: ChildProcess) {
  const state = { child, screen: '', log: '', ended: false };
  t.teardown(() => child.kill('SIGKILL'));
  child.stdout?.on('data', (chunk: Buffer) => (state.screen += chunk));
  child.stderr?.on('data', (chunk: Buffer) => (state.log += chunk));
  child.once('close', () => (state.ended = true));
  return state;
}

/** A server with the demo, by an ffmpeg that is a script. @param script gets a command that notes the call and takes its time */
async function demo(t: ExecutionContext, script: (slowly: string) => string) {
  const { folder, file } = await configured(t);
  const begun = join(folder, 'begun');
  const slow = writeScript(join(folder, 'ffmpeg'), script(`echo > ${begun}; exec sleep 5`));
  const child = spawn(join(ROOT, 'deploy/start'), ['--config', file, '--demo'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, KILN_FFMPEG: slow },
  });
  const server = watched(t, child);
  await until('it calls the program', () => existsSync(begun));
  return server;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  (signal === 'SIGTERM' ? test : long)(
    `${signal} to the whole process group ends a busy server in order, without a warning`,
    async (t) => {
      const kiln = await busy(t);
      const tree = processTree(kiln.pid);
      t.true(tree.length >= 3, 'the server, a media worker and an encoder');
      // it may have warned of a machine that is too slow
      const before = kiln.log.length;
      kiln.signalGroup(signal);
      t.is(await kiln.exited(), 0);
      t.notRegex(kiln.log.slice(before), WARNING_OR_WORSE);
      await until('its children have ended', () => !tree.some(isRunning));
    },
  );
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
  const { file } = await configured(t);
  const server = watched(
    t,
    spawn(join(ROOT, 'deploy/start'), ['--config', file], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, KILN_LOG_LEVEL: 'debug' },
    }),
  );
  await until('it starts', () => server.log.includes('"msg":"starting"'));
  process.kill(-(server.child.pid as number), 'SIGINT');
  await until('it has ended', () => server.ended);
  t.is(server.child.exitCode, 0);
  t.notRegex(server.log, WARNING_OR_WORSE);
});

long('a signal while it looks for an ffmpeg to run the demo with ends it in order', async (t) => {
  const server = await demo(t, (slowly) => slowly);
  server.child.kill('SIGTERM');
  await until('it has ended', () => server.ended);
  t.is(server.child.exitCode, 0);
});

long('a signal while the demo is being started closes the server, which is up already', async (t) => {
  // what the demo tries first is whether text can be drawn
  const real = `exec ${JSON.stringify(process.env.KILN_FFMPEG ?? 'ffmpeg')} "$@"`;
  const server = await demo(t, (slowly) => `case "$*" in *drawtext=*) ${slowly};; esac\n${real}`);
  server.child.kill('SIGTERM');
  await until('it has ended', () => server.ended);
  t.is(server.child.exitCode, 0);
  t.regex(server.log, /"signal":"SIGTERM","msg":"stopping; another signal stops at once"/);
  t.notRegex(server.log, WARNING_OR_WORSE);
  t.is(server.screen, '');
});

for (const { what, command } of [
  { what: 'the server', command: (config: string) => `exec npm start -- --config ${config} --demo` },
  { what: 'a local cluster', command: () => `exec npm run cluster -- 1 --free-ports` },
]) {
  test(`Ctrl-C in a terminal ends ${what} with code 0 and without a warning`, async (t) => {
    const { file } = await configured(t);
    const child = spawn('script', ['--quiet', '--return', '--flush', '--command', command(file), '/dev/null'], {
      cwd: ROOT,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NO_COLOR: '1', SHELL: '/bin/sh' },
    });
    const terminal = watched(t, child);
    await until('it is up, and its stream is published', () => {
      if (terminal.ended) throw new Error(terminal.screen);
      return /Publish/.test(terminal.screen) && (what !== 'the server' || /published/.test(terminal.screen));
    });
    const before = terminal.screen.length;
    child.stdin.write('\u0003');
    await until('it has ended', () => terminal.ended);
    t.is(child.exitCode, 0, terminal.screen);
    t.notRegex(terminal.screen.slice(before), /\b(WRN|ERR|FTL|WARN|ERROR|FATAL)\b|died|Warning/, terminal.screen);
  });
}
