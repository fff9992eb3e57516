import test from 'ava';
import { joinNals, nalUnits } from '../../../src/codecs/nal.ts';
import { userDataSei } from '../../../src/codecs/sei.ts';
import { SeiInsertion } from '../../../src/core/sei-insertion.ts';
import type { VideoTrack } from '../../../src/core/track.ts';
import { audioTrack, videoTrack } from '../../support/media/packets.ts';

const UUID = Buffer.alloc(16, 7);
const HIGH = videoTrack({ id: 0 });
const LOW = videoTrack({ id: 1 });
const VP8 = videoTrack({ id: 2, codec: 'VP8' });
const AUDIO = audioTrack({ id: 3 });
const TRACKS = [HIGH, LOW, VP8, AUDIO];

function frame(track: VideoTrack, seconds: number, key = false) {
  const pts = seconds * track.timebase.den;
  return { track, dts: pts, pts, duration: 0, key, data: joinNals([Buffer.of(key ? 0x65 : 0x41, 1)]) };
}

const userData = (text: string, keyFrameOnly = false) => ({ uuid: UUID, data: Buffer.from(text), keyFrameOnly });

test('an SEI is inserted once into each video track that can carry it, in its first frame from then on', (t) => {
  const insertion = new SeiInsertion();
  insertion.add(userData('a'), 5);
  const early = frame(HIGH, 4);
  t.is(insertion.apply(early, TRACKS), early);
  const first = insertion.apply(frame(HIGH, 5), TRACKS);
  t.deepEqual([...nalUnits(first.data)][0], userDataSei('H264', UUID, Buffer.from('a')));
  const second = frame(HIGH, 6);
  t.is(insertion.apply(second, TRACKS), second);
  const other = frame(VP8, 6);
  t.is(insertion.apply(other, TRACKS), other);
  t.false(insertion.empty);
  t.is([...nalUnits(insertion.apply(frame(LOW, 7), TRACKS).data)].length, 2);
  t.true(insertion.empty);
});

test('an SEI may wait for a key frame; several are inserted in order', (t) => {
  const insertion = new SeiInsertion();
  insertion.add(userData('key', true), 0);
  insertion.add(userData('1'), 0);
  insertion.add(userData('2'), 0);
  const texts = (key: boolean, seconds: number) =>
    [...nalUnits(insertion.apply(frame(HIGH, seconds, key), [HIGH]).data)]
      .slice(0, -1)
      .map((nal) => nal.subarray(19, -1).toString());
  t.deepEqual(texts(false, 1), ['1', '2']);
  t.deepEqual(texts(true, 2), ['key']);
  t.true(insertion.empty);
});

test('an SEI that no frame takes is forgotten, and the number of those that wait is limited', (t) => {
  const insertion = new SeiInsertion();
  for (let i = 0; i < 1000; i++) insertion.add(userData(`${i}`, true), 0);
  const { data } = insertion.apply(frame(HIGH, 1, true), [HIGH]);
  t.is([...nalUnits(data)].length, 33);
  insertion.add(userData('late', true), 0);
  insertion.apply(frame(HIGH, 31), [HIGH]);
  t.true(insertion.empty);
});

test('an SEI for a time from which timestamps have gone back is forgotten', (t) => {
  const insertion = new SeiInsertion();
  insertion.add(userData('a'), 1000);
  const early = frame(HIGH, 980);
  t.is(insertion.apply(early, [HIGH]), early);
  t.false(insertion.empty);
  const jumped = frame(HIGH, 5);
  t.is(insertion.apply(jumped, [HIGH]), jumped);
  t.true(insertion.empty);
});
