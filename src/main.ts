import { flushCompileCache } from 'node:module';
import { networkInterfaces } from 'node:os';
import { dirname, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { readArguments, USAGE } from './cli/command-line.ts';
import { ConfigError, loadConfig } from './config/load.ts';
import { startDemo, type Demo } from './server/demo.ts';
import { FfmpegError, findFfmpeg } from './ffmpeg.ts';
import { leave, threadsAreHeld } from './lib/leave.ts';
import { createLogger, logSettings } from './log/log.ts';
import { RecentEvents } from './log/recent-events.ts';
import type { Server as RunningServer } from './server/server.ts';
import { startFailure } from './server/start-failure.ts';
import { summary, wantsColor } from './server/summary.ts';
import { readGitVersion, readNumber, readVersion } from './version.ts';

/** Name of the stream that `--demo` publishes. */
const DEMO_STREAM = 'demo';
const EXIT_USAGE = 2;
const EXIT_FAILED = 1;
/** npm passes on what the terminal sends, so that one Ctrl-C comes twice. */
const SAME_SIGNAL_MS = 500;
/** A stop that takes longer than this ends anyway. */
const STOP_DEADLINE_MS = 10_000;

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(EXIT_USAGE);
}

/** Does what reads the user's wishes: when it throws, that is what the user has to know. */
function ask<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    fail((error as Error).message);
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function load(file: string) {
  try {
    return await loadConfig(file, { env: process.env, interfaces: networkInterfaces() });
  } catch (error) {
    if (error instanceof ConfigError) fail(error.message);
    throw error;
  }
}

const options = ask(() => readArguments(process.argv.slice(2), process.env));
if (options.help) {
  print(USAGE);
  process.exit(0);
}
if (options.version) {
  const { version, gitVersion } = await readVersion();
  print(`Kiln ${version} (${gitVersion})`);
  process.exit(0);
}
const { level, format } = ask(() => logSettings(process.env, process.stderr.isTTY, options['log-format']));
const { config, warnings, notes, generatedAccessToken } = await load(options.config);
if (options.check) {
  for (const warning of warnings) print(`warning: ${warning}`);
  print(`${options.config} is valid${counted(warnings.length)}`);
  process.exit(0);
}

const recentEvents = new RecentEvents();
const onLine = (line: string): void => recentEvents.add(line);
const log = createLogger(level, { format, onLine, color: wantsColor(process.stderr, process.env) });
for (const warning of warnings) log.warn(warning);
for (const note of notes) log.debug(note);

const folder = dirname(options.config);
const storageFile = resolve(folder, config.managers?.api.storage.path ?? '', 'config.json');
let phase: 'starting' | 'running' | 'draining' | 'stopping' = 'starting';
let lastSignal = -Infinity;
/** Ends the wait for streams to leave. */
const hurry = new AbortController();
/** undefined while it starts. */
let server: RunningServer | undefined;
let demo: Demo | undefined;
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
const planned = options.demo ? await planDemo() : undefined;
// what only answers or finds a fault does not wait for all of this to be loaded
const loaded = await import('./server/server.ts');
const version = readNumber();
const gitVersion = Promise.withResolvers<string>();
log.debug({ version, config: options.config }, 'starting');
server = await loaded.Server.start(config, {
  version: { version, gitVersion: gitVersion.promise },
  log,
  recentEvents,
  folder,
  storageFile,
  onReplaced,
}).catch((error: unknown) => {
  const failure = startFailure(error, config);
  if (failure === undefined) log.fatal({ err: error }, 'could not start');
  else process.stderr.write(`Kiln could not start: ${failure}\n`);
  return exit(EXIT_FAILED);
});
// the processes of git would take time of the start
gitVersion.resolve(readGitVersion(version));
phase = 'running';
log.info({ event: 'server.started' }, 'started');
if (planned !== undefined) demo = await startDemo({ ...planned, log });
if (isRunning()) {
  print(
    summary(config, server.addresses, {
      version,
      token: generatedAccessToken,
      demo: planned,
      color: wantsColor(process.stdout, process.env),
    }),
  );
} else {
  await demo?.close();
}
// for the next start, also if this process is killed
flushCompileCache();
saveMemory();

/**
 * Makes V8 return to the system what a collection of the old generation frees, where it keeps the largest size that the heap ever
 * had, and lets that generation grow threefold between two collections: data of packets is not in the heap but counts as growth,
 * so that a busy server would collect twice a second, for a quarter of its time. On the command line, or before the cache of
 * compiled code is written, these options make V8 refuse the compiled code of Node's own modules, or of the next start.
 */
function saveMemory(): void {
  setFlagsFromString('--memory-saver-mode');
  setFlagsFromString('--heap-growing-percent=200');
}

/** A signal may come while the demo is being started. */
function isRunning(): boolean {
  return phase === 'running';
}

/** `, 2 warnings` */
function counted(count: number): string {
  if (count === 0) return '';
  return `, ${count} ${count === 1 ? 'warning' : 'warnings'}`;
}

/** Settings of the test pattern, for the first application that accepts RTMP. */
async function planDemo() {
  const [vhost] = config.virtualHosts;
  const application = vhost?.applications.find(({ name, providers }) => name !== '*' && providers.rtmp);
  const rtmpPort = config.bind.providers.rtmp?.port;
  if (vhost === undefined || application === undefined || rtmpPort === undefined) {
    fail(`--demo: ${options.config} has no application with the RTMP provider`);
  }
  try {
    const { path } = await findFfmpeg();
    const names = { app: application.name, stream: DEMO_STREAM, hostNames: vhost.host.names };
    return { ...names, ip: config.ip, rtmpPort, ffmpegPath: path };
  } catch (error) {
    if (error instanceof FfmpegError) fail(`--demo: ${error.message}`);
    throw error;
  }
}

function onReplaced(): void {
  log.fatal('another process uses the id of this node: this process stops');
  void end(EXIT_FAILED);
}

/** A node of a cluster that is asked to (SIGTERM) drains first: others go on with what it has. */
async function stop(signal: NodeJS.Signals): Promise<void> {
  const now = performance.now();
  if (now - lastSignal < SAME_SIGNAL_MS) return;
  lastSignal = now;
  if (phase === 'stopping') return leave(EXIT_FAILED);
  if (phase === 'draining') return hurry.abort();
  if (phase === 'starting') {
    log.info({ event: 'server.stopping', signal }, 'stopped before the start was complete');
    return exit(0);
  }
  phase = signal === 'SIGTERM' && config.cluster !== undefined ? 'draining' : 'stopping';
  await demo?.close();
  if (phase === 'draining') {
    const atMostMs = config.cluster?.node.drainTimeout;
    log.info({ event: 'server.draining', signal, atMostMs }, 'draining, then stopping; another signal stops now');
    await server?.drain(hurry.signal);
    phase = 'stopping';
  }
  log.info({ event: 'server.stopping', signal }, 'stopping; another signal stops at once');
  await end(0);
}

/** Stops in order, within a deadline. */
async function end(code: number): Promise<void> {
  phase = 'stopping';
  setTimeout(() => {
    log.error('stopping took too long: exiting without waiting for the rest');
    void exit(EXIT_FAILED);
  }, STOP_DEADLINE_MS).unref();
  await server?.close();
  await exit(code);
}

/** Ends the process when its log has been written, or its reader takes too long. */
async function exit(code: number): Promise<never> {
  const isHeld = await threadsAreHeld();
  if (isHeld) log.error('a disk or name server does not answer: exiting without waiting for it');
  return await new Promise<never>(() => log.flush(() => (isHeld ? leave(code) : process.exit(code))));
}
