import type { Socket } from 'node:net';
import { statusInfo, type Command } from '../../../src/protocols/rtmp/command.ts';
import { ServerConnection, type ServerConnectionEvents } from '../../../src/protocols/rtmp/server-connection.ts';

const LIMITS = { messageBytes: 16 << 20, partialBytes: 16 << 20, chunkStreams: 16 };
const nothing = (): void => {};

/** Answers the commands of a publisher. */
export type Answer = (wire: ServerConnection, command: Command, streamId: number, socket: Socket) => void;

/** Takes every stream. */
export const acceptPublisher: Answer = (wire, { name, transactionId }, streamId) => {
  if (name === 'connect')
    wire.call('_result', transactionId, {}, statusInfo('status', 'NetConnection.Connect.Success', ''));
  else if (name === 'createStream') wire.call('_result', transactionId, null, 1);
  else if (name === 'publish') wire.status(streamId, statusInfo('status', 'NetStream.Publish.Start', ''));
};

/**
 * The server's side of an RTMP connection, which keeps nothing of what it is sent.
 * @param heard called with what the publisher sends
 */
export function answerRtmp(
  socket: Socket,
  answer: Answer,
  heard: Partial<Pick<ServerConnectionEvents, 'data' | 'video'>> = {},
): void {
  const wire: ServerConnection = new ServerConnection(
    LIMITS,
    (pieces) => pieces.forEach((piece) => socket.write(piece)),
    {
      command: (command, streamId) => answer(wire, command, streamId, socket),
      data: nothing,
      malformedData: nothing,
      audio: nothing,
      video: nothing,
      ...heard,
    },
  );
  socket.on('data', (data: Buffer) => wire.receive(data));
}
