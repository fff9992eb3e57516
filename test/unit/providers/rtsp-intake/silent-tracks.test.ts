import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import * as h264 from '../../../../src/codecs/h264.ts';
import { splitAnnexB } from '../../../../src/codecs/nal.ts';
import { writeSenderReport } from '../../../../src/protocols/rtp/rtcp.ts';
import type { RtspMedia } from '../../../../src/protocols/rtsp/description.ts';
import { described, setUpRtspIngest } from '../../../support/rtsp/rtsp-ingest.ts';
import { vector } from '../../codecs/vectors.ts';

const NALS = splitAnnexB(vector('h264-baseline.h264'));
const SETS = NALS.filter((nal) => [7, 8].includes(h264.nalType(nal)));
const IDR = NALS.find((nal) => h264.nalType(nal) === h264.NAL.idr) as Buffer;
const VIDEO = described('video', 96, 'H264');
const AAC = described('audio', 97, 'MPEG4-GENERIC', {
  clockRate: 16_000,
  parameters: { mode: 'AAC-hbr', sizelength: '13', indexlength: '3', indexdeltalength: '3', config: '1408' },
});
const G711 = described('audio', 8, 'PCMA', { clockRate: 8000 });
/** A unit of AAC behind its header of 16 bits. */
const AU = Buffer.concat([Buffer.of(0, 16, 0, 4 << 3), Buffer.of(1, 2, 3, 4)]);

/** With timers that go on when they are told to. */
function setUp(t: ExecutionContext, media: readonly RtspMedia[]) {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const set = setUpRtspIngest(t, media);
  let sent = 0;
  const picture = (): void => {
    const time = sent++ * 3600;
    for (const nal of SETS) set.send(0, time, nal, false);
    set.send(0, time, IDR);
  };
  const ids = (): number[][] => set.told.map((tracks) => tracks.map(({ id }) => id));
  return { ...set, picture, ids };
}

const report = (ssrc: number) =>
  writeSenderReport({ ssrc, wallMs: 1_700_000_000_000, rtpTime: 0, packets: 0, octets: 0, cname: 'x' });

for (const [name, silent] of [
  ['AAC', AAC],
  ['G.711', G711],
] as const) {
  test.serial(`${name} that is described and never comes is waited for once, and is no track until it comes`, (t) => {
    const { ids, send, picture, packets } = setUp(t, [VIDEO, silent]);
    picture();
    picture();
    t.deepEqual(ids(), []);
    mock.timers.tick(1000);
    t.deepEqual(ids(), [[0]]);
    t.is(packets.length, 2);
    mock.timers.tick(20_000);
    picture();
    t.deepEqual(ids(), [[0]]);
    send(1, 0, silent === AAC ? AU : Buffer.alloc(160, 0xd5));
    t.deepEqual(ids(), [[0], [0, 1]]);
    t.is(packets.at(-1)?.track.type, 'audio');
  });
}

test.serial('video that is described and never comes does not keep the audio back for longer', (t) => {
  const { ids, send } = setUp(t, [VIDEO, AAC]);
  send(1, 0, AU);
  mock.timers.tick(1000);
  t.deepEqual(ids(), [[1]]);
});

test.serial('tracks that come are waited for until their reports have come', (t) => {
  const { ids, ingest, send, picture } = setUp(t, [VIDEO, AAC, G711]);
  picture();
  send(1, 0, AU);
  ingest.rtcp(0, report(96));
  mock.timers.tick(1000);
  t.deepEqual(ids(), []);
  ingest.rtcp(1, report(97));
  send(1, 1024, AU);
  t.deepEqual(ids(), [[0, 1]]);
});

test.serial('packets of a sender without reports are taken as they come', (t) => {
  const { ids, send, picture } = setUp(t, [VIDEO, AAC]);
  picture();
  send(1, 0, AU);
  mock.timers.tick(1000);
  mock.timers.tick(1499);
  t.deepEqual(ids(), []);
  mock.timers.tick(1);
  t.deepEqual(ids(), [[0, 1]]);
});

test.serial('a form that is not taken is not waited for', (t) => {
  const celp = described('audio', 97, 'MPEG4-GENERIC', { clockRate: 16_000, parameters: { mode: 'CELP-cbr' } });
  const { ids, picture } = setUp(t, [VIDEO, celp]);
  picture();
  t.deepEqual(ids(), [[0]]);
});
