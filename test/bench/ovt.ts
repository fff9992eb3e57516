import type { Packet } from '../../src/core/packet.ts';
import { FrameWriter } from '../../src/protocols/ovt/media.ts';
import { Receiver } from '../../src/protocols/ovt/receiver.ts';
import { wireForm, type WireForms } from '../../src/protocols/ovt/wire-form.ts';

const LIMITS = { messageBytes: 0, frameBytes: 8 * 1024 * 1024 };

/** The pieces that a player is sent, as `Playback` makes them. */
export function writeOvt(frames: readonly Packet[], forms: WireForms): Buffer[] {
  const pieces: Buffer[] = [];
  const put = (bytes: Buffer): void => void pieces.push(bytes);
  const writer = new FrameWriter(1);
  const known = new Map([...new Set(frames.map(({ track }) => track))].map((track) => [track, wireForm(track, forms)]));
  for (const frame of frames) {
    const form = known.get(frame.track);
    if (form === undefined) continue;
    const { track, pts, dts, duration } = frame;
    const key = frame.key !== false;
    const data = form.pieces(frame);
    let size = 0;
    for (const piece of data) size += piece.length;
    const { bitstream, packetType } = form;
    writer.write({ track: track.id, pts, dts, duration, mediaType: 0, key, bitstream, packetType }, data, size, put);
  }
  return pieces;
}

/** @returns how many frames there were */
export function readOvt(chunks: readonly Buffer[]): number {
  let read = 0;
  const receiver = new Receiver(LIMITS, { message: () => {}, loss: () => {}, frame: () => read++ });
  for (const chunk of chunks) receiver.push(chunk);
  return read;
}
