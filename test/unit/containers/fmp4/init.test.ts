import test from 'ava';
import { createFile, MP4BoxBuffer } from 'mp4box';
import { initSegment } from '../../../../src/containers/fmp4/init.ts';
import { UnsupportedTrackError } from '../../../../src/containers/fmp4/sample-entry.ts';
import { findBox, parseBoxes } from '../../../support/media/boxes.ts';
import { AAC_LC, audioTrack, AVC_HIGH, videoTrack } from '../../../support/media/packets.ts';

/** What mp4box makes of an init segment. */
function judge(bytes: Buffer) {
  const file = createFile();
  let found: Parameters<NonNullable<typeof file.onReady>>[0] | undefined;
  file.onReady = (info) => (found = info);
  file.onError = (_module, message) => {
    throw new Error(message);
  };
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0));
  file.flush();
  if (found === undefined) throw new Error('mp4box found no moov');
  return found;
}

test('mp4box reads codec, size and timescale of H.264', (t) => {
  const bytes = initSegment(videoTrack({ config: AVC_HIGH, width: 1280, height: 720 }));
  const { isFragmented, tracks } = judge(bytes);
  t.true(isFragmented);
  t.is(tracks.length, 1);
  const [track] = tracks;
  t.like(track, { id: 1, codec: 'avc1.64001f', timescale: 90_000, language: 'und' });
  t.like(track?.video, { width: 1280, height: 720 });
  t.deepEqual(
    parseBoxes(bytes).map(({ type }) => type),
    ['ftyp', 'moov'],
  );
});

test('mp4box reads codec, rate and channels of AAC', (t) => {
  const { tracks } = judge(initSegment(audioTrack({ language: 'deu' })));
  t.like(tracks[0], { codec: 'mp4a.40.2', timescale: 48_000, language: 'deu' });
  t.like(tracks[0]?.audio, { sample_rate: 48_000, channel_count: 2 });
});

test('mp4box reads Opus, AV1 and HEVC', (t) => {
  const dops = Buffer.from('000201380000bb80000000', 'hex');
  t.is(judge(initSegment(audioTrack({ codec: 'OPUS', config: dops }))).tracks[0]?.codec, 'Opus');
  const av1c = Buffer.from('81050c000a0b00000024cf7f0dbffe3004', 'hex');
  t.regex(judge(initSegment(videoTrack({ codec: 'AV1', config: av1c }))).tracks[0]?.codec ?? '', /^av01\.0\.05/);
  const vpcc = Buffer.from('00 0a 82 02 02 02 00 00'.replaceAll(' ', ''), 'hex');
  t.regex(judge(initSegment(videoTrack({ codec: 'VP9', config: vpcc }))).tracks[0]?.codec ?? '', /^vp09\.00\.10\.08/);
});

/** Content of a box in the sample entry of a video. */
function inEntry(bytes: Buffer, wanted: string): string | undefined {
  const [entry] = parseBoxes((findBox(bytes, 'stsd') as Buffer).subarray(8));
  const boxes = parseBoxes((entry?.content as Buffer).subarray(78));
  return boxes.find(({ type }) => type === wanted)?.content.toString('hex');
}

test('anamorphic video declares its shape and its display size', (t) => {
  const square = videoTrack({ config: AVC_HIGH, width: 720, height: 576 });
  const bytes = initSegment({ ...square, sar: { num: 64, den: 45 } });
  const [track] = judge(bytes).tracks;
  t.like(track, { track_width: 1024, track_height: 576 });
  t.like(track?.video, { width: 720, height: 576 });
  t.is(inEntry(bytes, 'pasp'), '000000400000002d');
  const narrow = judge(initSegment({ ...square, height: 480, sar: { num: 10, den: 11 } })).tracks[0];
  t.is(Math.round((narrow?.track_width ?? 0) * 11), 7200);
  t.is(inEntry(initSegment(square), 'pasp'), undefined);
});

test('colour is declared where it is not what players assume', (t) => {
  const track = videoTrack({ config: AVC_HIGH });
  const colour = { primaries: 9, transfer: 16, matrix: 9, fullRange: false };
  const colr = (shape: Partial<typeof track>) => inEntry(initSegment({ ...track, ...shape }), 'colr');
  t.is(colr({ colour }), '6e636c7800090010000900');
  t.is(colr({ colour: { ...colour, fullRange: true } }), '6e636c7800090010000980');
  const vpcc = Buffer.from('020a a2 09 10 09 0000'.replaceAll(' ', ''), 'hex');
  t.is(colr({ codec: 'VP9', config: vpcc, colour }), undefined, 'vpcC has it');
  const usual = { primaries: 1, transfer: 1, matrix: 1, fullRange: false };
  t.deepEqual(initSegment({ ...track, colour: usual }), initSegment(track));
});

test('the decoder configuration is carried as it is', (t) => {
  const stsd = findBox(initSegment(videoTrack({ config: AVC_HIGH })), 'stsd') as Buffer;
  t.true(stsd.includes(AVC_HIGH));
  const sound = findBox(initSegment(audioTrack()), 'stsd') as Buffer;
  t.is(
    sound.toString('hex', 8 + 36),
    `00000027657364730000000003190000000411401500000000000000000000000502${AAC_LC.toString('hex')}060102`,
  );
});

test('a long configuration gets a descriptor size of four bytes', (t) => {
  const config = Buffer.alloc(300, 1);
  const stsd = findBox(initSegment(audioTrack({ config })), 'stsd') as Buffer;
  t.true(stsd.includes(Buffer.concat([Buffer.from('058080822c', 'hex'), config])));
});

test('a rate beyond 16 bits is left to the decoder configuration', (t) => {
  const stsd = findBox(
    initSegment(audioTrack({ samplerate: 96_000, timebase: { num: 1, den: 96_000 } })),
    'stsd',
  ) as Buffer;
  t.is(stsd.readUInt32BE(8 + 32), 0);
});

test('a codec that MP4 cannot carry is rejected by name', (t) => {
  t.throws(() => initSegment(videoTrack({ codec: 'VP8', config: undefined })), {
    instanceOf: UnsupportedTrackError,
    message: /VP8/,
  });
  t.throws(() => initSegment(audioTrack({ codec: 'MP2' })), { instanceOf: UnsupportedTrackError, message: /MP2/ });
  t.throws(() => initSegment(videoTrack({ config: undefined })), {
    instanceOf: UnsupportedTrackError,
    message: /configuration/,
  });
});

test('absurd values of a source are cut to what fits', (t) => {
  for (const value of [1e12, -5, NaN, Infinity, 0.5]) {
    t.notThrows(() => initSegment(videoTrack({ width: value, height: value, bitrate: value, framerate: value })));
    t.notThrows(() => initSegment(audioTrack({ channels: value, bitrate: value })));
  }
});
