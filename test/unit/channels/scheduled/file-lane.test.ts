import test from 'ava';
import { joinNals, nalUnits } from '../../../../src/codecs/nal.ts';
import { buildAvcConfig } from '../../../../src/codecs/h264-config.ts';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import { Timeline } from '../../../../src/core/timeline.ts';
import { FileLane } from '../../../../src/channels/scheduled/file-lane.ts';
import type { ItemUnit } from '../../../../src/channels/scheduled/item-source.ts';
import { h264Pps, h264Slice, h264Sps } from '../../../support/media/nal-build.ts';

test('PPS that change in a file are announced with the track, and are in its frames', (t) => {
  const sps = h264Sps({ profile: 66 });
  const [first, second] = [h264Pps(0, 0, 1), h264Pps(0, 0, 2)];
  const units: ItemUnit[] = [];
  const lane = new FileLane({
    taken: { type: 'video', codec: 'H264', stream: { index: 0, codec: 'H264' } },
    place: 0,
    wishes: { video: true, audio: [] },
    stream: {
      ...{ kind: 'video', codecTag: 'H264', timebase: { num: 1, den: 1000 }, decodeDelay: 0, width: 320, height: 192 },
      extradata: buildAvcConfig({ sps: [sps], pps: [first] }),
    },
    timeline: new Timeline({ timebase: VIDEO_TIMEBASE, bits: 62 }, false, null),
    onUnit: (unit) => units.push(unit),
  });
  const [key, later] = [h264Slice({ idr: true }), h264Slice({ frame: 1, order: 2 })];
  for (const [i, nals] of [[key], [second, later], [key]].entries()) {
    lane.push({ stream: 0, pts: 10_000 + 40 * i, key: nals.includes(key), data: joinNals(nals) });
  }
  lane.end();
  const inBand = units.map(({ track }) => track.type === 'video' && track.inBandSets);
  t.deepEqual(inBand, [undefined, true, true]);
  t.deepEqual(
    units.map(({ data }) => [...nalUnits(data)]),
    [[key], [second, later], [sps, second, key]],
  );
});
