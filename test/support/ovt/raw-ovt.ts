import { once } from 'node:events';
import { connect } from 'node:net';
import type { ExecutionContext } from 'ava';
import { readMessage, toResponse, writeMessage, type Response } from '../../../src/protocols/ovt/message.ts';
import type { Frame } from '../../../src/protocols/ovt/media.ts';
import { PAYLOAD } from '../../../src/protocols/ovt/packet.ts';
import { Receiver } from '../../../src/protocols/ovt/receiver.ts';
import { until } from '../time/until.ts';

/** An OVT client that asks what it is told to, and keeps what comes as it is on the wire. */
export async function rawOvt(t: Pick<ExecutionContext, 'teardown'>, port: number) {
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  const answers: Response[] = [];
  const frames: Frame[] = [];
  let closed = false;
  const receiver = new Receiver(
    { messageBytes: 1_000_000, frameBytes: 10_000_000 },
    {
      message: (text) => answers.push(toResponse(readMessage(text))),
      frame: (frame) => frames.push(frame),
      loss: () => {},
    },
  );
  socket
    .on('data', (bytes: Buffer) => receiver.push(bytes))
    .on('error', () => {})
    .on('close', () => (closed = true));
  await once(socket, 'connect');
  let id = 0;
  const next = () =>
    until('an answer', () => {
      const answer = answers.shift();
      if (answer === undefined && closed) throw new Error('the connection has ended');
      return answer;
    });
  return {
    socket,
    frames,
    get closed(): boolean {
      return closed;
    },
    notice: next,
    /** Sends any JSON, or any text, and answers what comes. */
    async send(message: unknown): Promise<Response> {
      const wire = writeMessage(PAYLOAD.request, {}, 0);
      const text = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
      const head = Buffer.from(wire.subarray(0, 18));
      head.writeUInt16BE(text.length, 16);
      socket.write(Buffer.concat([head, text]));
      return next();
    },
    ask(application: string, target: string): Promise<Response> {
      socket.write(writeMessage(PAYLOAD.request, { id: ++id, application, target }, Date.now()));
      return next();
    },
  };
}
