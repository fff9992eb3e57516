import test from 'ava';
import { createFile, MP4BoxBuffer } from 'mp4box';
import { CueSamples } from '../../../../src/containers/fmp4/cue-samples.ts';
import { Mp4File } from '../../../../src/containers/fmp4/file.ts';
import { mendMp4 } from '../../../../src/containers/fmp4/mend.ts';
import { readWebVttSample, webVttEntry, webVttSample } from '../../../../src/containers/fmp4/web-vtt.ts';
import {
  audioPackets,
  audioTrack,
  cuePacket,
  interleaved,
  subtitleTrack,
  videoPackets,
  videoTrack,
} from '../../../support/media/packets.ts';

const ENGLISH = subtitleTrack({ isDefault: true });
const KOREAN = subtitleTrack({ id: 769, publicName: '한국어', language: 'ko-KR', forced: true });
const MEDIA = [videoTrack(), audioTrack()] as const;

test('WebVTT in MP4 has the boxes of ISO/IEC 14496-30', (t) => {
  t.is(webVttEntry().toString('hex'), '0000001e7776747400000000000000010000000e76747443574542565454');
  t.is(webVttSample([]).toString('hex'), '0000000876747465');
  t.is(
    webVttSample([{ source: 7, settings: 'line:0', text: 'a\nb' }]).toString('hex'),
    '0000002d767474630000000c76736964000000070000000e737474676c696e653a300000000b7061796c610a62',
  );
});

test('a sample of WebVTT is read as it was written, and a damaged one costs a clear error', (t) => {
  const cues = [
    { source: 7, settings: 'line:0', text: 'a\nb' },
    { source: 8, settings: '', text: 'é' },
  ];
  const sample = webVttSample(cues);
  t.deepEqual(readWebVttSample(sample), cues);
  t.deepEqual(readWebVttSample(webVttSample([])), []);
  for (let end = 0; end < sample.length; end++) {
    try {
      t.true(readWebVttSample(sample.subarray(0, end)).length <= 2);
    } catch (error) {
      t.true(error instanceof RangeError, `${end}`);
    }
  }
});

/** Length of each sample in milliseconds, and its texts. */
function taken(samples: CueSamples, from: number, until: number) {
  return samples.take(from, until).samples.map(({ duration, data }) => {
    const texts = [...data.toString('latin1').matchAll(/payl([a-z]+)/g)].map(([, text]) => text);
    return `${duration} ${texts.join('+')}`;
  });
}

test('samples of subtitles follow each other without a gap, each with all cues of its time', (t) => {
  const samples = new CueSamples();
  samples.add({ ...cuePacket(ENGLISH, 1500, 'a'), duration: 1000 });
  samples.add({ ...cuePacket(ENGLISH, 2000, 'b'), duration: 2000 });
  t.deepEqual(taken(samples, 1000, 1000), []);
  t.deepEqual(taken(samples, 1000, 2200), ['500 ', '500 a', '200 a+b']);
  t.deepEqual(taken(samples, 1000, 3000), ['300 a+b', '500 b']);
  // it comes late: what is before the last sample is left out
  samples.add({ ...cuePacket(ENGLISH, 2500, 'c'), duration: 700 });
  t.deepEqual(taken(samples, 1000, 5000), ['200 b+c', '800 b', '1000 ']);
});

test('cues that begin and end at almost the same time make few samples, and none of them is lost', (t) => {
  const samples = new CueSamples();
  for (let ms = 0; ms < 100; ms++) samples.add({ ...cuePacket(ENGLISH, ms, 'x'), duration: 1 });
  const all = samples.take(0, 100).samples;
  t.is(all.length, 5);
  t.is(
    all.reduce((sum, { duration }) => sum + duration, 0),
    100,
  );
  t.true(all.every(({ data }) => data.includes('payl')));
});

const PACKETS = interleaved(
  videoPackets(MEDIA[0], { from: 10, to: 14, gop: 45 }),
  audioPackets(MEDIA[1], { from: 10, to: 14 }),
  [{ ...cuePacket(ENGLISH, 10_500, 'one'), duration: 1800 }, cuePacket(KOREAN, 12_000, '둘')],
);

function written() {
  const file = new Mp4File([...MEDIA, ENGLISH, KOREAN]);
  const media = Buffer.concat(PACKETS.flatMap((packet) => [...file.write(packet)]));
  const { tail, patches } = file.end();
  const whole = Buffer.concat([media, ...tail]);
  for (const { at, data } of patches) data.copy(whole, at);
  return { whole, grown: Buffer.concat([media, ...tail.slice(0, -1)]) };
}

test('an MP4 file has a track of each label, with its name, language and role, as long as the video', (t) => {
  const { whole } = written();
  const file = createFile();
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(whole).buffer, 0));
  file.flush();
  const { tracks } = file.getInfo();
  t.deepEqual(
    tracks.map(({ codec }) => codec),
    ['avc1.42c01e', 'mp4a.40.2', 'wvtt', 'wvtt'],
  );
  for (const [id, language, name, role, flags] of [
    [3, 'eng', 'English', 'subtitle', 7],
    [4, 'kor', '한국어', 'forced-subtitle', 6],
  ] as const) {
    const trak = file.getTrackById(id);
    t.is(trak.mdia.mdhd.languageString, language);
    t.is(Buffer.from(trak.mdia.hdlr.name, 'latin1').toString(), name);
    t.is(trak.mdia.hdlr.handler, 'text');
    t.is(trak.tkhd.flags, flags);
    t.like((trak.udta as unknown as { kinds: object[] }).kinds[0], { value: role });
    const samples = file.getTrackSamplesInfo(id);
    t.is(
      samples.reduce((sum, { duration }) => sum + duration, 0),
      4000,
    );
    const shown = samples.filter(({ size }) => size > 8);
    t.deepEqual(
      [shown[0]?.cts, (shown.at(-1)?.cts ?? 0) + (shown.at(-1)?.duration ?? 0)],
      id === 3 ? [500, 2300] : [2000, 3000],
    );
  }
});

test('an MP4 file with subtitles that was interrupted becomes what its end would have made of it', async (t) => {
  const { whole, grown } = written();
  const read = (at: number, count: number) => Promise.resolve(grown.subarray(at, at + count));
  const mended = await mendMp4(read, grown.length);
  const out = Buffer.concat([grown.subarray(0, mended.whole), ...mended.tail]);
  for (const { at, data } of mended.patches) data.copy(out, at);
  t.deepEqual(out, whole);
});

test('subtitles alone make no MP4 file, and those of a later file begin at its time', (t) => {
  t.deepEqual(new Mp4File([MEDIA[0], ENGLISH]).end(), { tail: [], patches: [] });
  const origin = { time: 900_000, timebase: MEDIA[0].timebase };
  const file = new Mp4File([MEDIA[0], ENGLISH], origin);
  const pieces = [cuePacket(ENGLISH, 11_000, 'a'), ...videoPackets(MEDIA[0], { from: 11, to: 12 })].flatMap(
    (packet) => [...file.write(packet)],
  );
  const fragments = Buffer.concat([...pieces, ...file.end().tail.slice(0, -1)]);
  const times = [...fragments.toString('latin1').matchAll(/tfdt/g)].map(({ index }) =>
    Number(fragments.readBigUInt64BE(index + 8)),
  );
  t.deepEqual(times, [90_000, 1000]);
});
