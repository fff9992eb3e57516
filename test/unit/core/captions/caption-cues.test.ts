import test from 'ava';
import { CaptionServices } from '../../../../src/core/captions/caption-services.ts';
import { Counters } from '../../../../src/core/counters.ts';
import { InputStream } from '../../../../src/core/input-stream.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { readCue } from '../../../../src/core/subtitle-cue.ts';
import { command, construct608, popOn, withCaptions, type Pair } from '../../../support/media/captions.ts';
import { RTMP, Sink, VIDEO, video } from '../support.ts';

const SLICE = Buffer.from('000000036588840a', 'hex').subarray(0, 7);
const FRAME = 3000;
const CONFIG = {
  subtitles: { enable: true, rendition: [{ label: 'English', autoSelect: false, forced: false }] },
  captions: { toWebVtt: [{ channel: 'CC1', label: 'English' }] },
};

/** A frame of 30 a second with a pair of CEA-608. @param ahead frames by which it is decoded before its place */
function frame(index: number, pair: Pair | undefined, ahead = 0, track = VIDEO): Packet {
  const pts = 90_000 + index * FRAME;
  const data = withCaptions('H264', SLICE, construct608(pair));
  return { track, dts: pts - ahead * FRAME, pts, duration: FRAME, key: index === 0, data };
}

function live() {
  const input = new InputStream('live', RTMP, new Counters(), CONFIG);
  input.setTracks([VIDEO]);
  const sink = new Sink();
  input.read(sink);
  /** Cues: from the first frame on, in frames, with text. */
  const cues = () =>
    sink.packets.flatMap(({ track: { type }, pts, duration, data }) =>
      type === 'subtitle' ? [{ start: pts - 1000, end: pts - 1000 + duration, text: readCue(data)?.text }] : [],
    );
  return { input, sink, cues };
}

test('a caption becomes cues without gaps while it is shown, ahead of the frames that they begin with', (t) => {
  const { input, sink, cues } = live();
  const load = popOn('HELLO');
  const pairs = [...load, ...Array.from({ length: 30 }, () => undefined), ...command('EDM')];
  for (const [index, pair] of [...pairs, ...Array.from({ length: 30 }, () => undefined)].entries())
    input.write(frame(index, pair));
  const shown = cues();
  // shown by the first of the two codes that end it
  const begin = Math.round(((load.length - 2) * 1000) / 30);
  t.is(shown[0]?.start, begin);
  t.true(shown.every(({ text }) => text === 'HELLO'));
  for (const [index, { start }] of shown.entries()) if (index > 0) t.is(shown[index - 1]?.end, start);
  const end = Math.round((pairs.length * 1000) / 30);
  const last = shown.at(-1)?.end ?? 0;
  t.true(last >= end - 70 && last < end + 400, `${last} ${end}`);
  const first = sink.packets.findIndex(({ track: { type } }) => type === 'subtitle');
  t.is(sink.packets[first + 1]?.pts, 90_000 + (load.length - 2) * FRAME);
});

test('captions are read in the order in which frames are shown', (t) => {
  const { input, cues } = live();
  const load = popOn('ORDER IS KEPT');
  const packets = load.map((pair, index) => frame(index, pair, index % 3 === 0 ? 3 : 1));
  for (const packet of packets.sort((one, other) => one.dts - other.dts)) input.write(packet);
  for (let index = load.length; index < load.length + 10; index++) input.write(frame(index, undefined, 0));
  t.is(cues()[0]?.text, 'ORDER IS KEPT');
});

test('a clock that jumps, back or ahead, shows what comes then', (t) => {
  const { input, cues } = live();
  for (const from of [0, 30_000, 100]) {
    const load = popOn(`FROM ${from}`);
    for (const [index, pair] of [...load, ...Array.from({ length: 12 }, () => undefined)].entries())
      input.write(frame(from + index, pair));
    t.is(cues().at(-1)?.text, `FROM ${from}`);
  }
});

test('a stream without the element has no cues', (t) => {
  const input = new InputStream('live', RTMP, new Counters(), { subtitles: CONFIG.subtitles });
  input.setTracks([VIDEO]);
  const sink = new Sink();
  input.read(sink);
  for (const [index, pair] of popOn('NONE').entries()) input.write(frame(index, pair));
  t.true(sink.packets.every(({ track: { type } }) => type === 'video'));
  t.is(input.captionTrack('CC1'), undefined);
  t.is(live().input.captionTrack('CC1')?.publicName, 'English');
});

test('captions of a stream are those of its first video that has any, or of another one when it has none any more', (t) => {
  const services = new CaptionServices();
  const other = { ...VIDEO, id: 7 };
  services.push({ ...frame(0, undefined, 0, other), data: SLICE });
  t.false(services.carried);
  services.push(frame(0, undefined));
  t.true(services.carried);
  for (const [index, pair] of popOn('X').entries()) services.push(frame(index, pair, 0, other));
  t.deepEqual(services.channels, []);
  for (const [index, pair] of popOn('X').entries()) services.push(frame(400 + index, pair, 0, other));
  t.deepEqual(services.channels, ['CC1']);
});

test('captions of a frame are looked for once, however many readers of the stream ask for them', (t) => {
  const readers = Array.from({ length: 3 }, () => new CaptionServices());
  let searched = 0;
  for (const [index, pair] of popOn('X').entries()) {
    const packet = frame(index, pair);
    const includes = packet.data.includes.bind(packet.data);
    packet.data.includes = (value: string | number | Buffer) => {
      searched++;
      return includes(value);
    };
    for (const reader of readers) reader.push({ ...packet, track: { ...VIDEO } });
  }
  t.is(searched, popOn('X').length);
  for (const { channels } of readers) t.deepEqual(channels, ['CC1']);
});

test('a text of a data message is shown until another one comes, an empty one, or for six seconds', (t) => {
  const captions = {
    toWebVtt: [
      { channel: 'TEXT', label: 'English' },
      { channel: 'TEXT-deu', label: 'Deutsch' },
    ],
  };
  const rendition = ['English', 'Deutsch'].map((label) => ({ label, autoSelect: false, forced: false }));
  const input = new InputStream('live', RTMP, new Counters(), { captions, subtitles: { enable: true, rendition } });
  input.setTracks([VIDEO]);
  const sink = new Sink();
  input.read(sink);
  let at = 0;
  const play = (frames: number) => {
    for (const end = at + frames; at < end; at++) input.write(video(1 + at / 10, at === 0));
  };
  const shown = (label: string) => {
    const joined: { text: string | undefined; from: number; to: number }[] = [];
    for (const { track, pts, duration, data } of sink.packets) {
      if (track !== input.subtitleTrack(label)) continue;
      const text = readCue(data)?.text;
      const last = joined.at(-1);
      if (last?.text === text && last?.to === pts) last.to += duration;
      else joined.push({ text, from: pts, to: pts + duration });
    }
    return joined;
  };
  input.showText('too early', '');
  play(10);
  input.showText(' One\n\n<b>two</b> ', 'eng');
  input.showText('eins', 'DEU');
  play(20);
  input.showText('three', '');
  play(10);
  input.showText('', 'eng');
  play(60);
  const [early, first, second] = shown('English');
  t.is(early?.text, 'too early');
  t.is(first?.text, 'One\n&lt;b&gt;two&lt;/b&gt;');
  t.true(first !== undefined && first.from >= 1900 && first.from <= 2300 && first.to >= 3900 && first.to <= 4300);
  t.is(second?.text, 'three');
  t.true(second !== undefined && second.from === first?.to && second.to <= 5300);
  t.is(shown('English').length, 3);
  const [german] = shown('Deutsch');
  t.is(german?.text, 'eins');
  t.true(german !== undefined && german.to - german.from >= 5700 && german.to - german.from <= 6600);
});
