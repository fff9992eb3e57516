import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { buildAvcConfig } from '../../../../src/codecs/h264-config.ts';
import { BitstreamError } from '../../../../src/codecs/bits.ts';

import { joinNals, splitAnnexB } from '../../../../src/codecs/nal.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import type { AudioTrack, VideoTrack } from '../../../../src/core/track.ts';
import { MAX_PAYLOAD } from '../../../../src/protocols/rtp/header.ts';
import { createPacketizer, type Packetizer } from '../../../../src/protocols/rtp/packetizer.ts';
import { depacketizeAv1, depacketizeH264, depacketizeVp8, depacketizeVp9 } from '../../../support/webrtc/rtp.ts';
import { vector } from '../../codecs/vectors.ts';

const PARAMETER_SETS = splitAnnexB(vector('h264-baseline.h264')).filter((nal) =>
  [7, 8].includes((nal[0] as number) & 31),
);
const [SPS, PPS] = PARAMETER_SETS as [Buffer, Buffer];

function video(codec: VideoTrack['codec'], config?: Buffer): VideoTrack {
  return {
    id: 0,
    name: 'video',
    type: 'video',
    codec,
    timebase: VIDEO_TIMEBASE,
    bypass: true,
    width: 640,
    height: 360,
    bitrate: 0,
    framerate: 0,
    keyFrameInterval: 0,
    ...(config && { config }),
  };
}

const H264 = video('H264', buildAvcConfig({ sps: [SPS], pps: [PPS] }));

function packet(track: VideoTrack | AudioTrack, data: Buffer, key: boolean): Packet {
  return { track, data, key, dts: 0, pts: 0, duration: 0 };
}

interface Sent {
  readonly payload: Buffer;
  readonly marker: boolean;
}

/** What a packetizer sends, and that only the last packet says so and none is too large. */
function send(t: ExecutionContext, packetizer: Packetizer, frame: Packet): Buffer[] {
  const sent: Sent[] = [];
  const payload = Buffer.alloc(MAX_PAYLOAD);
  packetizer.packetize(frame, {
    payload,
    send: (size, marker) => sent.push({ payload: Buffer.from(payload.subarray(0, size)), marker }),
  });
  t.deepEqual(
    sent.map(({ marker }) => marker),
    sent.map((_, i) => i === sent.length - 1),
  );
  t.true(sent.every(({ payload: { length } }) => length > 0 && length <= MAX_PAYLOAD));
  return sent.map((one) => one.payload);
}

function nal(type: number, size: number, fill = 0x55): Buffer {
  const unit = Buffer.alloc(size, fill);
  unit[0] = 0x60 | type;
  return unit;
}

test('H.264: SPS and PPS share one STAP-A in front of a key frame, byte by byte', (t) => {
  const idr = nal(5, 3000);
  const payloads = send(t, createPacketizer('H264'), packet(H264, joinNals([idr]), true));
  const lengths = (unit: Buffer) => Buffer.of(unit.length >> 8, unit.length & 255);
  t.deepEqual(
    payloads[0],
    Buffer.concat([Buffer.of(((SPS[0] as number) & 0x60) | 24), lengths(SPS), SPS, lengths(PPS), PPS]),
  );
  t.is((payloads[1] as Buffer)[0], 0x60 | 28);
  t.deepEqual(
    payloads.slice(1).map((one) => one[1]),
    [0x85, 0x05, 0x45],
  );
  t.deepEqual(depacketizeH264(payloads), [SPS, PPS, idr]);
});

test('H.264: units of every size around the limits come back as they were', (t) => {
  const packetizer = createPacketizer('H264');
  for (const size of [1, 2, 500, 1196, 1197, 1198, 1199, 1200, 1201, 1202, 2396, 2397, 2398, 50_000]) {
    const unit = nal(1, size);
    t.deepEqual(depacketizeH264(send(t, packetizer, packet(H264, joinNals([unit]), false))), [unit], `${size}`);
  }
});

test('H.264: small units of one frame share packets, in order; delimiters and filler stay out', (t) => {
  const units = [nal(6, 20), ...Array.from({ length: 30 }, (_, i) => nal(1, 100 + i)), nal(1, 4000), nal(1, 10)];
  const noise = [nal(9, 2), nal(12, 40)];
  const data = joinNals([...noise, ...units, nal(12, 8)]);
  const payloads = send(t, createPacketizer('H264'), packet(H264, data, false));
  t.deepEqual(depacketizeH264(payloads), units);
  t.true(payloads.length < 10);
});

test('H.264: parameter sets that come with a frame go along, with a key frame in place of those of the track', (t) => {
  const packetizer = createPacketizer('H264');
  const [sps, pps, idr, slice] = [nal(7, 20), nal(8, 6), nal(5, 100), nal(1, 50)];
  const sent = (key: boolean, ...nals: Buffer[]) =>
    depacketizeH264(send(t, packetizer, packet(H264, joinNals(nals), key)));
  t.deepEqual(sent(true, sps, pps, idr), [sps, pps, idr]);
  t.deepEqual(sent(false, pps, slice), [pps, slice]);
  t.deepEqual(sent(true, idr), [SPS, PPS, idr]);
});

test('H.264: a new configuration of the track is sent with its first key frame', (t) => {
  const packetizer = createPacketizer('H264');
  const idr = nal(5, 100);
  send(t, packetizer, packet(H264, joinNals([idr]), true));
  const pps = Buffer.concat([PPS, Buffer.of(0x11)]);
  const changed = video('H264', buildAvcConfig({ sps: [SPS], pps: [pps] }));
  t.deepEqual(depacketizeH264(send(t, packetizer, packet(changed, joinNals([idr]), true))), [SPS, pps, idr]);
});

test('H.264: a malformed frame throws and the next one is whole', (t) => {
  const packetizer = createPacketizer('H264');
  const bad = Buffer.concat([joinNals([nal(1, 50)]), Buffer.of(0, 0, 9, 9, 1)]);
  t.throws(() => send(t, packetizer, packet(H264, bad, false)), { instanceOf: BitstreamError });
  const good = nal(1, 60);
  t.deepEqual(depacketizeH264(send(t, packetizer, packet(H264, joinNals([good]), false))), [good]);
});

test('VP8: fragments and picture ids', (t) => {
  const packetizer = createPacketizer('VP8');
  for (const [index, size] of [1, 1195, 1196, 1197, 30_000].entries()) {
    const frame = randomBytes(size);
    const payloads = send(t, packetizer, packet(video('VP8'), frame, index === 0));
    t.deepEqual(depacketizeVp8(payloads), { pictureId: index, frame });
  }
});

test('VP9: a key frame has its size, and the others are marked as dependent', (t) => {
  const packetizer = createPacketizer('VP9');
  const track = video('VP9');
  for (const [index, size] of [5000, 1, 1197, 1198, 20_000].entries()) {
    const frame = randomBytes(size);
    t.deepEqual(depacketizeVp9(send(t, packetizer, packet(track, frame, index === 0))), {
      pictureId: index,
      interPredicted: index !== 0,
      size: index === 0 ? { width: 640, height: 360 } : undefined,
      frame,
    });
  }
});

/** An OBU with a size field, and the same without: as on the wire. */
function obu(type: number, body: Buffer): { sized: Buffer; bare: Buffer } {
  const leb: number[] = [];
  for (let left = body.length; ; left >>= 7) {
    leb.push((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    if (left <= 0x7f) break;
  }
  return {
    sized: Buffer.concat([Buffer.of((type << 3) | 2), Buffer.from(leb), body]),
    bare: Buffer.concat([Buffer.of(type << 3), body]),
  };
}

test('AV1: OBUs travel without sizes, in fragments where they must', (t) => {
  const packetizer = createPacketizer('AV1');
  for (const size of [1, 100, 1190, 1195, 1196, 1197, 1198, 1199, 1200, 1201, 2400, 100_000]) {
    const units = [obu(1, randomBytes(11)), obu(6, randomBytes(size)), obu(5, randomBytes(3))];
    const data = Buffer.concat(units.map(({ sized }) => sized));
    const sent = depacketizeAv1(send(t, packetizer, packet(video('AV1'), data, true)));
    t.true(sent.newSequence);
    t.deepEqual(
      sent.obus,
      units.map(({ bare }) => bare),
      `${size}`,
    );
  }
});

test('AV1: delimiters stay out, a key unit gets the sequence header of the configuration', (t) => {
  const sequence = obu(1, randomBytes(10));
  const track = video('AV1', Buffer.concat([Buffer.of(0x81, 0, 0x0c, 0), sequence.sized]));
  const frame = obu(6, randomBytes(500));
  const data = Buffer.concat([obu(2, Buffer.alloc(0)).sized, frame.sized]);
  const packetizer = createPacketizer('AV1');
  t.deepEqual(depacketizeAv1(send(t, packetizer, packet(track, data, true))).obus, [sequence.bare, frame.bare]);
  t.deepEqual(depacketizeAv1(send(t, packetizer, packet(track, data, false))), {
    newSequence: false,
    obus: [frame.bare],
  });
});

test('Opus: one packet each, and none that has no room', (t) => {
  const track: AudioTrack = {
    id: 1,
    name: 'audio',
    type: 'audio',
    codec: 'OPUS',
    timebase: { num: 1, den: 48_000 },
    bypass: true,
    samplerate: 48_000,
    channels: 2,
    bitrate: 0,
  };
  const sent: { size: number; marker: boolean }[] = [];
  const sink = {
    payload: Buffer.alloc(MAX_PAYLOAD),
    send: (size: number, marker: boolean) => sent.push({ size, marker }),
  };
  createPacketizer('OPUS').packetize(packet(track, Buffer.alloc(200, 7), true), sink);
  t.deepEqual(sent, [{ size: 200, marker: false }]);
  t.deepEqual(sink.payload.subarray(0, 200), Buffer.alloc(200, 7));
  t.throws(() => createPacketizer('OPUS').packetize(packet(track, Buffer.alloc(MAX_PAYLOAD + 1), true), sink));
});

test('a codec without payload format is refused', (t) => {
  t.throws(() => createPacketizer('JPEG'), { message: /JPEG/ });
});

test('random bytes as frames are sent or refused, never anything else', (t) => {
  let seed = 12345;
  const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32;
  for (const codec of ['H264', 'AV1', 'VP8', 'VP9'] as const) {
    const packetizer = createPacketizer(codec);
    const payload = Buffer.alloc(MAX_PAYLOAD);
    for (let i = 0; i < 500; i++) {
      const data = Buffer.from(Array.from({ length: Math.floor(random() * 300) }, () => Math.floor(random() * 256)));
      try {
        packetizer.packetize(packet(video(codec), data, random() < 0.5), {
          payload,
          send: (size) => t.true(size <= MAX_PAYLOAD),
        });
      } catch (error) {
        t.true(error instanceof BitstreamError, `${codec}: ${String(error)}`);
      }
    }
  }
});
