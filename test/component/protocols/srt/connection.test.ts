import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { srtOptions } from '../../../../src/lib/srt-options.ts';
import type { SrtConnection } from '../../../../src/protocols/srt/connection.ts';
import { SrtListener } from '../../../../src/protocols/srt/listener.ts';
import { SrtRuntime } from '../../../../src/protocols/srt/runtime.ts';
import { SrtCaller } from '../../../support/srt/caller.ts';
import { UdpRelay } from '../../../support/network/udp-relay.ts';
import { until } from '../../../support/time/until.ts';

const log = pino({ level: 'silent' });
const MESSAGE = 1316;
/** Of messages that the way to the server loses, each time they are sent. */
const LOST_MESSAGE = 564;
const SRT_HEADER = 16;

/** A listener that reads from everybody, and what it was told, in order. */
async function listen(t: ExecutionContext, latency: number) {
  const runtime = SrtRuntime.open(log);
  const told: string[] = [];
  const taken: SrtConnection[] = [];
  const listener = new SrtListener(runtime, {
    host: '127.0.0.1',
    port: 0,
    log,
    refuse: () => undefined,
    options: srtOptions([{ key: 'SRTO_LATENCY', value: String(latency) }]),
    connection: (connection) => {
      taken.push(connection);
      connection.handlers = {
        data: (bytes) => {
          for (let at = 0; at < bytes.length; at += MESSAGE) told.push(String(bytes[at]));
        },
        lost: (messages) => void told.push(`${messages} lost`),
        close: (reason) => void told.push(reason),
      };
      connection.read();
    },
  });
  t.teardown(async () => {
    await listener.close();
    for (const connection of taken) connection.close();
    await runtime.close();
  });
  const relay = await UdpRelay.open(
    listener.port,
    () =>
      ({ length }) =>
        length === SRT_HEADER + LOST_MESSAGE ? [] : [0],
  );
  t.teardown(() => relay.close());
  const call = await new SrtCaller(t).call(relay.port, { streamId: 'x' });
  await until('it is in', () => taken.length === 1);
  return { call, told, connection: taken[0] as SrtConnection };
}

test.serial('lost SRT messages are reported in their place among those that arrive', async (t) => {
  const { call, told } = await listen(t, 60);
  await call.send(Buffer.alloc(MESSAGE, 1));
  for (let i = 0; i < 3; i++) await call.send(Buffer.alloc(LOST_MESSAGE, 2));
  await call.send(Buffer.alloc(2 * MESSAGE, 3));
  await until('all came', () => told.length === 4);
  t.deepEqual(told, ['1', '3 lost', '3', '3']);
});

test.serial('SRT messages that were sent before the end arrive, whatever the latency is', async (t) => {
  const { call, told } = await listen(t, 600);
  for (let i = 0; i < 20; i++) await call.send(Buffer.alloc(MESSAGE, i));
  await until('it has gone out', async () => (await call.unsent()) === 0);
  await call.close();
  await until('the end', () => told.includes('the connection is gone'));
  t.deepEqual(told, [...Array.from({ length: 20 }, (_, i) => String(i)), 'the connection is gone']);
});

test.serial('SRT messages that this side sent before it ends are received by the other side', async (t) => {
  const { call, connection } = await listen(t, 400);
  for (let i = 0; i < 20; i++) t.true(connection.send(Buffer.alloc(MESSAGE, i)));
  let ended = false;
  connection.finish(() => void (ended = true));
  let bytes = 0;
  await until('the end', async () => {
    const more = await call.receive();
    if (more > 0) bytes += more;
    return more < 0;
  });
  t.is(bytes, 20 * MESSAGE);
  await until('it is told', () => ended);
  t.true(connection.closed);
});
