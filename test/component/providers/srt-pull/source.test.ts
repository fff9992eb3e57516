import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { SrtCalls } from '../../../../src/protocols/srt/calls.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import { srtSource } from '../../../../src/providers/srt-pull/source.ts';
import { freePorts } from '../../../support/network/ports.ts';
import { openGuard } from '../../../support/rtsp/rtsp-player.ts';
import { SrtCaller } from '../../../support/srt/caller.ts';
import { until } from '../../../support/time/until.ts';

/** Pulls over SRT, whose log is kept. */
function pulling(t: ExecutionContext) {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const calls = new SrtCalls(openGuard(), log);
  t.teardown(() => calls.close());
  const open = srtSource(calls);
  const options = { log, silenceMs: undefined, ignoresReports: false };
  return {
    lines,
    open: (url: string, { signal }: AbortController) => open(url, { ...options, clock: new LocalClock(), signal }),
  };
}

/** Whether a UDP port of loopback can be bound. */
async function isFree(port: number): Promise<boolean> {
  const socket = createSocket('udp4').bind(port, '127.0.0.1');
  const free = await once(socket, 'listening').then(
    () => true,
    () => false,
  );
  socket.close();
  return free;
}

test.serial(
  'calls over SRT that are not answered, and ports without a caller, end with their pulls and are free',
  async (t) => {
    const { open, lines } = pulling(t);
    const silent = createSocket('udp4').bind(0, '127.0.0.1');
    await once(silent, 'listening');
    t.teardown(() => silent.close());
    const stop = new AbortController();
    const opening = open(`srt://127.0.0.1:${silent.address().port}`, stop);
    const [, { port }] = (await once(silent, 'message')) as [Buffer, RemoteInfo];
    t.false(await isFree(port));
    stop.abort();
    await t.throwsAsync(opening, { name: 'PullError', message: 'the call was ended' });
    await until('the port is free', () => isFree(port));
    const [other] = freePorts(1) as [number];
    const waiting = new AbortController();
    const awaiting = open(`srt://127.0.0.1:${other}?mode=listener`, waiting);
    await until('it listens', async () => !(await isFree(other)));
    waiting.abort();
    await t.throwsAsync(awaiting, { name: 'PullError' });
    await until('the other is free', () => isFree(other));
    t.deepEqual(lines, []);
  },
);

test.serial(
  'a port on which a pull waited for an SRT caller is that of the next pull, also while libsrt lets go of it',
  async (t) => {
    const { open, lines } = pulling(t);
    const [port] = freePorts(1) as [number];
    const url = `srt://127.0.0.1:${port}?mode=listener`;
    const first = new AbortController();
    const opening = open(url, first);
    await until('it listens', async () => !(await isFree(port)));
    first.abort();
    await t.throwsAsync(opening, { name: 'PullError' });
    // at once, while libsrt is closing the port
    const next = open(url, new AbortController());
    const caller = new SrtCaller(t);
    await until('a caller is taken', async () => (await caller.call(port)).refused === 0);
    const source = await next;
    source.close();
    t.like(source.connection, { protocol: 'SRT' });
    t.deepEqual(lines, []);
  },
);
