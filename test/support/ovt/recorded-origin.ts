import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { HEADER_BYTES } from '../../../src/protocols/ovt/packet.ts';

/**
 * One whole pull from OvenMediaEngine 0.20, as it was on the connection: a stream that it got over RTMP and passes by,
 * H.264 of 320x180 at 30 frames a second (GOP 30) and AAC, 44,100 Hz, mono. The origin's side is cut after 150 kB.
 */
const vector = (name: string): Buffer => readFileSync(new URL(`../../vectors/ovt/ovt-${name}.bin`, import.meta.url));
export const FROM_EDGE = vector('edge-to-ome-0.20');
export const FROM_ORIGIN = vector('ome-0.20-to-edge');

/** Packets of a connection, heads included. */
export function packetsOf(wire: Buffer): Buffer[] {
  const packets: Buffer[] = [];
  for (let at = 0; at < wire.length; at += packets.at(-1)?.length ?? 0)
    packets.push(wire.subarray(at, at + HEADER_BYTES + wire.readUInt16BE(at + 16)));
  return packets;
}

/** Answers a client as the recorded origin did. @returns the requests, as they come */
export function answerAsRecorded(connection: Duplex): Buffer[] {
  const asked: Buffer[] = [];
  const [described, playing, ...media] = packetsOf(FROM_ORIGIN) as [Buffer, Buffer, ...Buffer[]];
  connection.on('data', (bytes: Buffer) => {
    for (const packet of packetsOf(bytes)) {
      asked.push(packet);
      connection.write(asked.length === 1 ? described : Buffer.concat([playing, ...media]));
    }
  });
  return asked;
}
