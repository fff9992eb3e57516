import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { pino } from 'pino';
import { SrtListener } from '../../../src/protocols/srt/listener.ts';
import { SrtRuntime } from '../../../src/protocols/srt/runtime.ts';
import { freePorts } from '../network/ports.ts';
import { acceptPublisher, answerRtmp } from '../rtmp/rtmp-answers.ts';

/** Pushes by way that make fifty. */
export const FIFTY = { RTMP: 15, 'MPEG-TS over TCP': 10, 'MPEG-TS over UDP': 10, SRT: 15 } as const;
export type Way = keyof typeof FIFTY;

/** Takes any number of pushes, and throws their media away. */
export interface Receiver {
  readonly protocol: string;
  readonly url: string;
  close(): Promise<unknown> | void;
}

async function tcp(protocol: string, path: string, isRtmp: boolean): Promise<Receiver> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    if (isRtmp) answerRtmp(socket, acceptPublisher);
    else socket.resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { protocol, url: `${isRtmp ? 'rtmp' : 'tcp'}://127.0.0.1:${port}${path}`, close: () => void server.close() };
}

async function udp(): Promise<Receiver> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 8 * 1024 * 1024 }).on('message', () => {});
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { protocol: 'mpegts', url: `udp://127.0.0.1:${socket.address().port}`, close: () => void socket.close() };
}

async function srt(): Promise<Receiver> {
  const log = pino({ level: 'silent' });
  const runtime = SrtRuntime.open(log);
  const [port] = freePorts(1) as [number];
  const listener = new SrtListener(runtime, {
    host: '127.0.0.1',
    port,
    log,
    options: [],
    refuse: () => undefined,
    connection: (connection) => {
      connection.handlers = { data: () => {}, close: () => connection.close() };
      connection.read();
    },
  });
  const close = async (): Promise<void> => {
    await listener.close();
    await runtime.close();
  };
  return { protocol: 'srt', url: `srt://127.0.0.1:${port}`, close };
}

/** A receiver for each way. */
export async function openReceivers(): Promise<Readonly<Record<Way, Receiver>>> {
  return {
    RTMP: await tcp('rtmp', '/app', true),
    'MPEG-TS over TCP': await tcp('mpegts', '', false),
    'MPEG-TS over UDP': await udp(),
    SRT: await srt(),
  };
}
