import type { Origin } from '../../../src/containers/file-muxer.ts';
import { Mp4File } from '../../../src/containers/fmp4/file.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { MediaTrack, SubtitleTrack } from '../../../src/core/track.ts';
import { SourceError, type ByteSource } from '../../../src/playback/byte-source.ts';
import { openMp4 } from '../../../src/playback/clip/recording.ts';

/** A recorded file in memory, which counts what is read of it. */
export class MemoryFile implements ByteSource {
  reads = 0;
  bytesRead = 0;
  largest = 0;
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get size(): number {
    return this.bytes.length;
  }

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Buffer> {
    signal?.throwIfAborted();
    if (offset < 0 || length < 0 || offset + length > this.size) throw new SourceError('not there');
    this.reads++;
    this.bytesRead += length;
    this.largest = Math.max(this.largest, length);
    return await Promise.resolve(Buffer.from(this.bytes.subarray(offset, offset + length)));
  }
}

/** Bytes of a finished recording. */
export function recordedBytes(
  tracks: readonly (MediaTrack | SubtitleTrack)[],
  packets: readonly Packet[],
  origin?: Origin,
): Buffer {
  const file = new Mp4File(tracks, origin);
  const pieces = packets.flatMap((packet) => file.write(packet));
  const { tail, patches } = file.end();
  const bytes = Buffer.concat([...pieces, ...tail]);
  for (const { at, data } of patches) data.copy(bytes, at);
  return bytes;
}

/** A finished recording as a file of clips. */
export async function clipFile(
  tracks: readonly (MediaTrack | SubtitleTrack)[],
  packets: readonly Packet[],
  startTime = 0,
  origin?: Origin,
) {
  const source = new MemoryFile(recordedBytes(tracks, packets, origin));
  return { source, recording: await openMp4(source), id: `at ${startTime}`, startTime };
}

/** All that a clip is made of. */
export async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
