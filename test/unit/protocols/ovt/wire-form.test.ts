import test from 'ava';
import { buildAudioSpecificConfig } from '../../../../src/codecs/aac.ts';
import { parseAvcConfig } from '../../../../src/codecs/h264.ts';
import { joinNals, splitAnnexB } from '../../../../src/codecs/nal.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Track } from '../../../../src/core/track.ts';
import { wireForm, type WireForms } from '../../../../src/protocols/ovt/wire-form.ts';
import { AVC_BASELINE, audioTrack, videoTrack } from '../../../support/media/packets.ts';

function onWire(track: Track, forms: WireForms, data: Buffer, key = true) {
  const form = wireForm(track, forms);
  const packet: Packet = { track, dts: 0, pts: 0, duration: 0, key, data };
  return form && { format: [form.bitstream, form.packetType], data: Buffer.concat(form.pieces(packet)) };
}

const NALS = [Buffer.of(0x65, 1), Buffer.of(0x65, 2, 3)];
const { sps, pps } = parseAvcConfig(AVC_BASELINE);

test('H.264 for edges: start codes, parameter sets in front of key frames alone', (t) => {
  const key = onWire(videoTrack(), 'framed', joinNals(NALS));
  t.deepEqual(key?.format, [1, 3]);
  t.deepEqual(splitAnnexB(key?.data ?? Buffer.alloc(0)), [...sps, ...pps, ...NALS]);
  const delta = onWire(videoTrack(), 'framed', joinNals(NALS), false);
  t.is(delta?.data.toString('hex'), '00000001650100000001650203');
  t.deepEqual(onWire(videoTrack({ config: Buffer.of(9) }), 'framed', joinNals(NALS))?.data, delta?.data);
});

test('a picture of very many NAL units is the same as one of few', (t) => {
  const many = Array.from({ length: 500 }, (_, i) => Buffer.from([0x41, i & 0x7f, 1 + (i >> 7)]));
  const data = joinNals(many);
  const before = Buffer.from(data);
  t.deepEqual(splitAnnexB(onWire(videoTrack(), 'framed', data)?.data ?? Buffer.alloc(0)), [...sps, ...pps, ...many]);
  t.deepEqual(splitAnnexB(onWire(videoTrack(), 'framed', data, false)?.data ?? Buffer.alloc(0)), many);
  t.deepEqual(data, before, 'nobody writes to a packet');
});

test('AAC for edges has ADTS headers, where those can describe it', (t) => {
  const frame = Buffer.alloc(100, 1);
  t.is(onWire(audioTrack(), 'framed', frame)?.data.subarray(0, 7).toString('hex'), 'fff14c800d7ffc');
  t.deepEqual(onWire(audioTrack(), 'framed', frame)?.format, [10, 1]);
  const heAac = buildAudioSpecificConfig({ samplerate: 24_000, channels: 2, sbr: true });
  t.is(
    onWire(audioTrack({ config: heAac }), 'framed', frame)
      ?.data.subarray(0, 3)
      .toString('hex'),
    'fff158',
  );
  for (const config of [undefined, Buffer.of(1), Buffer.from('1180', 'hex')]) {
    t.deepEqual(onWire({ ...audioTrack(), config } as Track, 'framed', frame), { format: [8, 1], data: frame });
  }
});

test('between nodes everything is as it is; VP9 goes to no edge', (t) => {
  const data = joinNals(NALS);
  const formats = { H264: 0, H265: 3, AV1: 26, VP8: 6, VP9: 255 } as const;
  for (const [codec, bitstream] of Object.entries(formats) as [keyof typeof formats, number][]) {
    const sent = onWire(videoTrack({ codec }), 'plain', data);
    t.deepEqual([sent?.format[0], sent?.data], [bitstream, data]);
  }
  t.deepEqual(onWire(audioTrack(), 'plain', data), { format: [8, 1], data });
  t.is(onWire(videoTrack({ codec: 'VP9' }), 'framed', data), undefined);
});
