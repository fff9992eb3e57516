import test from 'ava';
import { createFile, MP4BoxBuffer } from 'mp4box';
import { Mp4File } from '../../../../src/containers/fmp4/file.ts';
import { indexOf } from '../../../support/media/mp4-index.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../support/media/packets.ts';

const VIDEO = videoTrack();
const SOUND = audioTrack();

function packet(track: typeof VIDEO | typeof SOUND, dts: number, data: string, key = true, offset = 0) {
  return { track, dts, pts: dts + offset, duration: 0, key, data: Buffer.from(data, 'hex') };
}

test('a closed MP4 file has tables of all samples, in one mdat around the fragments', (t) => {
  const file = new Mp4File([VIDEO, SOUND]);
  const pieces: Buffer[] = [];
  for (const one of [
    packet(VIDEO, 90_000, 'aa', true, 3000),
    packet(SOUND, 48_480, '0101'),
    packet(VIDEO, 93_000, 'bbbb', false, 3000),
    packet(SOUND, 49_504, '0202'),
    packet(VIDEO, 96_000, 'cc', true, 3000),
  ])
    pieces.push(...file.write(one));
  const { tail, patches } = file.end();
  const bytes = Buffer.concat([...pieces, ...tail]);
  for (const { at, data } of patches) data.copy(bytes, at);
  const head = bytes.readUInt32BE(0);
  t.is(bytes.toString('latin1', head + 4, head + 8), 'mdat');
  const movie = head + Number(bytes.readBigUInt64BE(head + 8));
  t.is(bytes.toString('latin1', movie + 4, movie + 8), 'moov');
  t.is(movie + bytes.readUInt32BE(movie), bytes.length);
  const moov = bytes.subarray(movie);
  const table = (type: string, entry = 0) => {
    const at = moov.indexOf(type, entry);
    return moov.subarray(at + 8, at - 4 + moov.readUInt32BE(at - 4)).toString('hex');
  };
  // three pictures of 3000 ticks, shown 3000 later, of which the second is no key frame
  t.is(table('stts'), '000000010000000300000bb8');
  t.is(table('ctts'), '000000010000000300000bb8');
  t.is(table('stss'), '000000020000000100000003');
  t.is(table('stsz'), '0000000000000003000000010000000200000001');
  t.is(table('stsc'), '00000002000000010000000200000001000000020000000100000001');
  const chunks = table('co64');
  t.is(chunks.slice(0, 8), '00000002');
  const first = Number.parseInt(chunks.slice(8, 24), 16);
  t.is(bytes.toString('hex', first, first + 3), 'aabbbb');
  // the sound begins 10 ms later: 900 ticks of the movie
  const sound = moov.lastIndexOf('trak');
  t.is(
    table('elst', sound),
    '00000002' +
      '0000000000000384' +
      'ffffffffffffffff' +
      '00010000' +
      '0000000000000f00' +
      '0000000000000000' +
      '00010000',
  );
});

test('fMP4 is not written without packets', (t) => {
  t.deepEqual(new Mp4File([VIDEO]).end(), { tail: [], patches: [] });
});

/** Seconds in the file of the first frame of both tracks, where the audio comes so much later than its times say. */
function beginnings(late: number, audioFrom = 10) {
  const file = new Mp4File([VIDEO, SOUND]);
  const arrivals = [
    ...videoPackets(VIDEO, { from: 10, to: 20, gop: 15 }).map((one) => ({ one, at: one.dts / 90_000 })),
    ...audioPackets(SOUND, { from: audioFrom, to: 20 }).map((one) => ({ one, at: one.dts / 48_000 + late })),
  ].sort((a, b) => a.at - b.at);
  const pieces = arrivals.flatMap(({ one }) => file.write(one));
  const { tail, patches } = file.end();
  const bytes = Buffer.concat([...pieces, ...tail]);
  for (const { at, data } of patches) data.copy(bytes, at);
  return { bytes, tracks: indexOf((tail.at(-1) as Buffer).subarray(8)) };
}

test('audio that comes later than the video of its time is in its place', (t) => {
  for (const late of [0, 0.3, 0.8, 2]) {
    const { tracks } = beginnings(late, 9.9);
    const [video, audio] = tracks as [(typeof tracks)[number], (typeof tracks)[number]];
    // the first audio frame begins at 9.92 s, the first video frame at 10 s
    t.deepEqual([video.empty, audio.empty], [7200, 0], `${late} s`);
    t.is(audio.count, audioPackets(SOUND, { from: 9.9, to: 20 }).length);
  }
});

test('a track that is silent is waited for no longer than a few seconds, and what comes of it then goes to its place', (t) => {
  const { tracks } = beginnings(5, 9.9);
  const [video, audio] = tracks as [(typeof tracks)[number], (typeof tracks)[number]];
  t.deepEqual([video.empty, audio.empty], [0, 480]);
  const file = new Mp4File([VIDEO, SOUND]);
  const begun = videoPackets(VIDEO, { from: 10, to: 20, gop: 15 }).find((one) => file.write(one).length > 0);
  t.true((begun as { dts: number }).dts < 14 * 90_000);
});

test('mp4box finds all samples in the index, and no fragments', (t) => {
  const { bytes } = beginnings(0);
  const file = createFile(true);
  let info: Parameters<NonNullable<typeof file.onReady>>[0] | undefined;
  file.onReady = (found) => (info = found);
  file.onError = (_module, message) => t.fail(message);
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0));
  file.flush();
  t.false(info?.isFragmented);
  t.is(info?.duration, 900_960);
  t.deepEqual(
    info?.tracks.map(({ nb_samples: count }) => count),
    [300, audioPackets(SOUND, { from: 10, to: 20 }).length],
  );
  const [video] = videoPackets(VIDEO, { from: 10, to: 11 });
  t.deepEqual(Buffer.from(file.getTrackSample(1, 0)?.data ?? []), video?.data);
});

/** What mp4box reads in a file: when the first picture of the first track is shown, in seconds, with the edits of the track. */
function shownAt(bytes: Buffer): number {
  const file = createFile(true);
  let info: Parameters<NonNullable<typeof file.onReady>>[0] | undefined;
  file.onReady = (found) => (info = found);
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0));
  file.flush();
  const track = info?.tracks[0];
  const samples = file.getTrackSamplesInfo(1);
  const first = Math.min(...samples.map(({ cts, timescale }) => cts / timescale));
  const [empty, own] = track?.edits ?? [];
  if (info === undefined || empty === undefined || own === undefined) return first;
  if (empty.media_time !== -1) throw new Error('the first edit is not empty');
  return empty.segment_duration / info.timescale + first - own.media_time / (samples[0]?.timescale ?? NaN);
}

for (const [what, offsets, from] of [
  ['is not reordered', [0], 10.5],
  ['is reordered', [6000, 15_000, 6000, 0], 10.5],
  ['is shown with the second picture first', [9000, 0, 12_000, 3000], 10.5],
  ['is reordered, and begins with the audio', [6000, 15_000, 6000, 0], 10],
] as const) {
  test(`the index has video that ${what} where the fragments have it`, (t) => {
    const file = new Mp4File([VIDEO, SOUND]);
    const video = videoPackets(VIDEO, { from, to: 14, gop: 15 }).map((one, index) => ({
      ...one,
      key: index % 15 === 0,
      pts: one.dts + (offsets[index % offsets.length] as number),
    }));
    const pieces = interleaved(video, audioPackets(SOUND, { from: 10, to: 14 })).flatMap((one) => file.write(one));
    const { tail, patches } = file.end();
    const growing = Buffer.concat([...pieces, ...tail.slice(0, -1)]);
    const whole = Buffer.concat([growing, tail.at(-1) as Buffer]);
    for (const { at, data } of patches) data.copy(whole, at);
    const expected = Math.min(...video.map(({ pts }) => pts)) / 90_000 - Math.min(from, 480_256 / 48_000);
    t.true(Math.abs(shownAt(growing) - expected) < 1e-4, `while it grows at ${shownAt(growing)} s, not ${expected}`);
    t.true(Math.abs(shownAt(whole) - expected) < 1e-4, `at its end at ${shownAt(whole)} s, not ${expected}`);
    // what readers take for the time of the first picture that do not subtract: the beginning of the edit
    const [empty] = indexOf((tail.at(-1) as Buffer).subarray(8));
    if (from > 10) t.true(Math.abs((empty?.empty ?? 0) / 90_000 - expected) < 1e-4);
  });
}

test('fMP4 holds payloads themselves, not copies', (t) => {
  const sent = videoPackets(VIDEO, { to: 3 });
  const file = new Mp4File([VIDEO]);
  const out = new Set(sent.flatMap((one) => file.write(one)).concat(file.end().tail));
  t.true(sent.every(({ data }) => out.has(data)));
});
