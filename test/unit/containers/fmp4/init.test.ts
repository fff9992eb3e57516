import test from 'ava';
import { createFile, MP4BoxBuffer } from 'mp4box';
import { initSegment } from '../../../../src/containers/fmp4/init.ts';
import { UnsupportedTrackError } from '../../../../src/containers/fmp4/sample-entry.ts';
import { findBox, parseBoxes } from '../../../support/boxes.ts';
import { AAC_LC, audioTrack, AVC_HIGH, videoTrack } from '../../../support/packets.ts';

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

test('what has no place in MP4 is refused by name', (t) => {
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
