import test from 'ava';
import { nalUnits, joinNals } from '../../../../src/codecs/nal.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { MediaTrack } from '../../../../src/core/track.ts';
import { MAX_PAYLOAD } from '../../../../src/protocols/rtp/header.ts';
import { createPacketizer } from '../../../../src/protocols/rtp/packetizer.ts';
import { createDepacketizer } from '../../../../src/protocols/rtp/receive/create.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';

interface Sent {
  readonly payload: Buffer;
  readonly marker: boolean;
  /** RTP time after that of the frame; absent: none. */
  readonly later?: number;
}

function send(codec: MediaTrack['codec'], data: Buffer, track: object = {}): Sent[] {
  const base = codec === 'H265' ? videoTrack() : audioTrack();
  const sent: Sent[] = [];
  const payload = Buffer.alloc(MAX_PAYLOAD);
  const { config: _, ...bare } = base;
  const packet = {
    track: { ...bare, codec, ...track },
    data,
    key: false,
    dts: 0,
    pts: 0,
    duration: 0,
  } as unknown as Packet;
  createPacketizer(codec).packetize(packet, {
    payload,
    send: (size, marker, later = 0) =>
      sent.push({ payload: Buffer.from(payload.subarray(0, size)), marker, ...(later > 0 && { later }) }),
  });
  return sent;
}

/** What the receiver of this server makes of payloads. */
function receive(
  encoding: string,
  clockRate: number,
  parameters: Record<string, string>,
  sent: readonly Sent[],
): Buffer[] {
  const frames: Buffer[] = [];
  const faults: string[] = [];
  const sink = {
    frame: (data: Buffer) => void frames.push(Buffer.from(data)),
    damaged: (reason: string) => void faults.push(reason),
  };
  const depacketizer = createDepacketizer({ encoding, clockRate, parameters }, sink as never);
  sent.forEach(({ payload, marker }, sequence) =>
    depacketizer.push({ payload: Buffer.from(payload), marker, timestamp: 0, sequence } as never),
  );
  if (faults.length > 0) throw new Error(faults.join(', '));
  return frames;
}

/** @param header both bytes of a NAL unit's header */
function unit(header: number, size: number): Buffer {
  const nal = Buffer.alloc(size, 0x55);
  nal.writeUInt16BE(header, 0);
  // first_slice_segment_in_pic_flag
  nal[2] = 0x80;
  return nal;
}

test('H.265: small units share an aggregation packet with the lowest temporal id, large ones are fragments', (t) => {
  const sei = unit((39 << 9) | 2, 20);
  const slice = unit((1 << 9) | 3, 30);
  const [only, ...more] = send('H265', joinNals([sei, slice]));
  t.deepEqual(more, []);
  t.is(only?.payload.readUInt16BE(0), (48 << 9) | 2);
  t.true(only?.marker);
  t.deepEqual(only?.payload.subarray(2), Buffer.concat([Buffer.of(0, 20), sei, Buffer.of(0, 30), slice]));

  const large = unit((19 << 9) | 1, 3000);
  const fragments = send('H265', joinNals([large]));
  t.deepEqual(
    fragments.map(({ payload, marker }) => [payload.readUInt16BE(0), payload[2], marker]),
    [
      [(49 << 9) | 1, 0x80 | 19, false],
      [(49 << 9) | 1, 19, false],
      [(49 << 9) | 1, 0x40 | 19, true],
    ],
  );
  t.deepEqual(Buffer.concat(fragments.map(({ payload }) => payload.subarray(3))), large.subarray(2));
  t.is(send('H265', joinNals([unit((1 << 9) | 1, 40)]))[0]?.payload.readUInt16BE(0), (1 << 9) | 1);
});

test('H.265 frames of any sizes come out of the receiver as they went in', (t) => {
  for (const sizes of [[10], [600, 600, 600], [1198, 1200, 1201], [5000], [30, 9000, 40, 1190]]) {
    const nals = sizes.map((size, i) => unit(((i === 0 ? 19 : 1) << 9) | 1, size));
    const [frame] = receive('H265', 90_000, {}, send('H265', joinNals(nals)));
    t.deepEqual(frame && [...nalUnits(frame)], nals);
  }
});

test('AAC: a unit has its size in front, and one that is too large is in pieces', (t) => {
  const small = Buffer.alloc(371, 7);
  t.deepEqual(send('AAC', small), [
    { payload: Buffer.concat([Buffer.of(0, 16, 371 >> 5, (371 << 3) & 255), small]), marker: true },
  ]);
  const parameters = { mode: 'AAC-hbr', sizelength: '13', indexlength: '3', indexdeltalength: '3' };
  for (const size of [1, 371, 1196, 1197, 4000, 8191]) {
    const data = Buffer.alloc(size, size & 255);
    t.deepEqual(receive('mpeg4-generic', 48_000, parameters, send('AAC', data)), [data]);
  }
  t.throws(() => send('AAC', Buffer.alloc(8192)), { instanceOf: RangeError });
});

test('MPEG audio: fragments have their offset', (t) => {
  const sent = send('MP3', Buffer.alloc(1440, 1));
  t.deepEqual(
    sent.map(({ payload }) => [payload.readUInt32BE(0), payload.length]),
    [
      [0, 1200],
      [1196, 248],
    ],
  );
});

test('AC-3: the header tells the kind of a fragment, and how many there are', (t) => {
  const heads = (codec: 'AC3' | 'EAC3', size: number) =>
    send(codec, Buffer.alloc(size)).map(({ payload }) => [payload[0], payload[1]]);
  t.deepEqual(heads('AC3', 768), [[0, 1]]);
  t.deepEqual(heads('AC3', 1792), [
    [1, 2],
    [3, 2],
  ]);
  t.deepEqual(heads('AC3', 2560), [
    [2, 3],
    [3, 3],
    [3, 3],
  ]);
  t.deepEqual(heads('EAC3', 768), [[0, 1]]);
  t.deepEqual(heads('EAC3', 2000), [
    [1, 2],
    [1, 2],
  ]);
});

test('G.711 and G.722 that fit no packet are sent in pieces of whole samples, each with its time', (t) => {
  for (const codec of ['PCMA', 'PCMU', 'G722'] as const) {
    t.deepEqual(send(codec, Buffer.alloc(160, 3), { channels: 1 }), [{ payload: Buffer.alloc(160, 3), marker: false }]);
    const long = Buffer.from(Array.from({ length: 3000 }, (_, at) => at & 255));
    const mono = send(codec, long, { channels: 1 });
    t.deepEqual(
      mono.map(({ payload, later = 0 }) => [payload.length, later]),
      [
        [1200, 0],
        [1200, 1200],
        [600, 2400],
      ],
    );
    t.deepEqual(Buffer.concat(mono.map(({ payload }) => payload)), long);
    const seven = send(codec, long, { channels: 7 });
    t.deepEqual(
      seven.map(({ payload, later = 0 }) => [payload.length, later]),
      [
        [1197, 0],
        [1197, 171],
        [606, 342],
      ],
    );
  }
});

test('Opus, which has no fragments, is sent whole or not at all', (t) => {
  t.throws(() => send('OPUS', Buffer.alloc(1201)), { instanceOf: RangeError, message: /OPUS/ });
});
