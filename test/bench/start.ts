import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { serverXml, TOKEN } from '../support/server/kiln.ts';
import { isRunning, processTree, residentBytes } from '../support/load/usage.ts';
import { until } from '../support/time/until.ts';
import { freePorts } from '../support/network/ports.ts';
import type { Measurement } from './measurement.ts';
import { costLine, ROUNDS } from './ratio.ts';

/** What `npm start` runs. */
const START = join(import.meta.dirname, '../../deploy/start');
const EVERY_MS = 3;
const IDLE_MS = 2000;
const MIB = 1024 * 1024;

/** From the command to the first connection that RTMP takes, and memory at rest. */
export const start: Measurement = {
  name: 'start',
  run: async ({ folder }) => {
    const [rtmp = 0, http = 0, api = 0, first = 0, last = 0, bare = 0] = freePorts(6);
    const file = join(folder, 'Server.xml');
    await writeFile(file, serverXml({ rtmp, http, api, ice: [first, last] }));
    const listener = `require('node:net').createServer().listen(${bare}, '127.0.0.1')`;
    const times = { values: [] as number[], references: [] as number[] };
    const memory = { values: [] as number[], references: [] as number[] };
    // the first start fills the compile cache
    await (await timed(START, ['--config', file], rtmp)).stop();
    for (let round = 0; round < ROUNDS; round++) {
      const server = await timed(START, ['--config', file], rtmp);
      times.values.push(server.ms);
      await delay(IDLE_MS);
      memory.values.push(residentBytes(server.pid) / MIB);
      await server.stop();
      const node = await timed(process.execPath, ['-e', listener], bare);
      times.references.push(node.ms);
      await delay(IDLE_MS);
      memory.references.push(residentBytes(node.pid) / MIB);
      await node.stop();
    }
    const of = 'Node.js that listens';
    return [
      costLine({ what: 'start to first accepted connection', unit: 'ms', digits: 0, ...times, of, reached: 6.2 }),
      costLine({ what: 'idle memory', unit: 'MiB', digits: 0, ...memory, of, reached: 2.3 }),
    ];
  },
};

interface Where {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** Starts a server and waits until a port takes a connection. @param cwd folder to start it in */
export async function timed(program: string, args: readonly string[], port: number, { cwd, env }: Where = {}) {
  if (await accepts(port)) throw new Error(`port ${port} is in use`);
  const begin = performance.now();
  const child = spawn(program, args, {
    cwd,
    stdio: 'ignore',
    env: { ...process.env, KILN_ACCESS_TOKEN: TOKEN, ...env },
  });
  const running = () => processTree(child.pid as number).filter(isRunning);
  const kill = () => running().forEach((pid) => process.kill(pid, 'SIGKILL'));
  process.once('exit', kill);
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
    await delay(EVERY_MS);
  }
  const ms = performance.now() - begin;
  return {
    ms,
    pid: child.pid as number,
    // npm may end before the server that it has started, which would answer for the next one
    stop: async () => {
      const tree = processTree(child.pid as number);
      child.kill('SIGTERM');
      await until('the server has ended', () => !tree.some(isRunning));
      process.off('exit', kill);
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
