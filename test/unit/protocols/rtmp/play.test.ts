import test from 'ava';
import { ChunkReader } from '../../../../src/protocols/rtmp/chunk-reader.ts';
import { encodeNumber, MessageType, type RtmpMessage } from '../../../../src/protocols/rtmp/message.ts';
import { ChunkWriter } from '../../../../src/protocols/rtmp/chunk-writer.ts';
import { onMessageStream, playMessage } from '../../../../src/protocols/rtmp/play.ts';
import { OUT_CHUNK_SIZE } from '../../../../src/protocols/rtmp/server-connection.ts';

const LIMITS = { messageBytes: 1 << 20, partialBytes: 1 << 20, chunkStreams: 8 };

function read(pieces: readonly Buffer[]): RtmpMessage[] {
  const messages: RtmpMessage[] = [];
  const reader = new ChunkReader(LIMITS, (message) => messages.push(message));
  reader.push(Buffer.concat(new ChunkWriter().setChunkSize(OUT_CHUNK_SIZE)));
  reader.push(Buffer.concat(pieces));
  return messages.filter(({ type }) => type !== MessageType.SetChunkSize);
}

test('a message for players is written as one buffer', (t) => {
  const message = playMessage(MessageType.Audio, 0x010203, [Buffer.of(0xaf, 1), Buffer.of(7)]);
  t.is(message.toString('hex'), '040102030000030801000000af0107');
});

for (const streamId of [1, 2, 255]) {
  for (const time of [0, 0xffffff, 0xffffffff]) {
    test(`a client reads it on message stream ${streamId} at ${time}`, (t) => {
      const body = Buffer.alloc(OUT_CHUNK_SIZE * 2 + 5, 'x');
      const message = playMessage(MessageType.Video, time, [body.subarray(0, 9), body.subarray(9)]);
      const before = Buffer.from(message);
      t.deepEqual(read(onMessageStream(message, streamId)), [
        { type: MessageType.Video, streamId, timestamp: time, payload: body },
      ]);
      t.deepEqual(message, before, 'other clients get it as it was');
    });
  }
}

test('a number fits behind a message for players', (t) => {
  const control = new ChunkWriter().message(2, MessageType.WindowAckSize, 0, 0, encodeNumber(5));
  const messages = read([playMessage(MessageType.DataAmf0, 5, [Buffer.of(5)]), ...control]);
  t.deepEqual(
    messages.map(({ type }) => type),
    [MessageType.DataAmf0, MessageType.WindowAckSize],
  );
});
