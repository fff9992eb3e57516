import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { StorageError } from '#cluster';
import { ConfigError, loadConfig } from './config/load.ts';
import { startDemo } from './demo.ts';
import { FfmpegError, findFfmpeg } from './ffmpeg.ts';
import { createLogger, LOG_LEVELS } from './log.ts';
import { SrtError } from './protocols/srt/error.ts';
import { Server } from './server.ts';
import { summary, wantsColor } from './summary.ts';
import { readVersion } from './version.ts';

const USAGE = `Kiln, a live media server.

  npm start -- [options]

  --config FILE   Server.xml to run (default config/Server.xml)
  --demo          also publish a built-in test pattern and print the page to open
  --check         validate the configuration and exit
  --version       print the version and exit
  --help          print this and exit

Environment: KILN_LOG_LEVEL (trace, debug, info, warn, error; default info), KILN_ACCESS_TOKEN, KILN_FFMPEG.`;

/** Name of the stream that `--demo` publishes. */
const DEMO_STREAM = 'demo';
const EXIT_USAGE = 2;
const EXIT_FAILED = 1;
/** npm passes on what the terminal sends, so that one Ctrl-C comes twice. */
const SAME_SIGNAL_MS = 500;
/** A stop that takes longer than this ends anyway. */
const STOP_DEADLINE_MS = 10_000;

function readArguments() {
  try {
    return parseArgs({
      options: {
        config: { type: 'string', default: 'config/Server.xml' },
        demo: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        version: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    fail((error as Error).message);
  }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(EXIT_USAGE);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function load(file: string) {
  try {
    return await loadConfig(file, { env: process.env });
  } catch (error) {
    if (error instanceof ConfigError) fail(error.message);
    throw error;
  }
}

const options = readArguments();
if (options.help) {
  print(USAGE);
  process.exit(0);
}
const version = await readVersion();
if (options.version) {
  print(`Kiln ${version.version} (${version.gitVersion})`);
  process.exit(0);
}
const { config, warnings, generatedAccessToken } = await load(options.config);
if (options.check) {
  for (const warning of warnings) print(`warning: ${warning}`);
  print(`${options.config} is valid`);
  process.exit(0);
}

const log = createLogger(readLogLevel());
for (const warning of warnings) log.warn(warning);

const folder = dirname(options.config);
const storageFile = resolve(folder, config.managers?.api.storage.path ?? '', 'config.json');
const planned = options.demo ? await planDemo() : undefined;
let phase: 'starting' | 'running' | 'draining' | 'stopping' = 'starting';
let lastSignal = -Infinity;
/** Ends the wait for streams to leave. */
const hurry = new AbortController();
/** undefined while it starts. */
let running: Server | undefined;
const onReplaced = (): void => {
  log.fatal('another process goes by the id of this node: this one ends');
  void end(EXIT_FAILED);
};
const server = await Server.start(config, { version, log, folder, storageFile, onReplaced }).catch(
  (error: NodeJS.ErrnoException) => {
    // What the system refuses, such as a port in use or a folder that cannot be written, needs no stack to be understood.
    if (error.syscall !== undefined || error instanceof StorageError || error instanceof SrtError)
      process.stderr.write(`Kiln could not start: ${error.message}\n`);
    else log.fatal({ err: error }, 'could not start');
    process.exit(EXIT_FAILED);
  },
);
running = server;
const demo = planned && { ...planned, publisher: await startDemo({ ...planned, log }) };
print(
  summary(config, server.addresses, {
    version: version.version,
    token: generatedAccessToken,
    demo: demo && { app: demo.app, stream: demo.stream },
    color: wantsColor(process.stdout, process.env),
  }),
);

function readLogLevel(): string {
  const level = process.env.KILN_LOG_LEVEL || 'info';
  if (!LOG_LEVELS.includes(level)) fail(`KILN_LOG_LEVEL: "${level}" is not one of ${LOG_LEVELS.join(', ')}`);
  return level;
}

/** What to publish the test pattern with: to the first application that takes RTMP. */
async function planDemo() {
  const [vhost] = config.virtualHosts;
  const application = vhost?.applications.find(({ name, providers }) => name !== '*' && providers.rtmp);
  const rtmpPort = config.bind.providers.rtmp?.port;
  if (vhost === undefined || application === undefined || rtmpPort === undefined) {
    fail(`--demo: ${options.config} has no application that takes RTMP`);
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

/** A node of a cluster that is asked to (SIGTERM) drains first: others go on with what it has. */
async function stop(signal: NodeJS.Signals): Promise<void> {
  const now = performance.now();
  if (now - lastSignal < SAME_SIGNAL_MS) return;
  lastSignal = now;
  if (phase === 'stopping') process.exit(EXIT_FAILED);
  if (phase === 'draining') return hurry.abort();
  phase = signal === 'SIGTERM' && config.cluster !== undefined ? 'draining' : 'stopping';
  await demo?.publisher.close();
  if (phase === 'draining') {
    log.info({ atMostMs: config.cluster?.node.drainTimeout }, 'draining, then stopping; a second signal stops now');
    await server.drain(hurry.signal);
    phase = 'stopping';
  }
  log.info({ signal }, 'stopping; another signal stops at once');
  await end(0);
}

/** Stops in order, within a deadline. */
async function end(code: number): Promise<void> {
  phase = 'stopping';
  setTimeout(() => {
    log.error('the stop took too long');
    process.exit(EXIT_FAILED);
  }, STOP_DEADLINE_MS).unref();
  await running?.close();
  process.exit(code);
}
phase = 'running';
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
