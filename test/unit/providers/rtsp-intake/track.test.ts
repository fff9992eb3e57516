import test from 'ava';
import { pino } from 'pino';
import { FaultLog } from '../../../../src/log/log.ts';
import { RtpClock, type RtpTrackClock } from '../../../../src/protocols/rtp/receive/clock.ts';
import { parseRtp } from '../../../../src/protocols/rtp/receive/packet.ts';
import { readDescription } from '../../../../src/protocols/rtsp/description.ts';
import { RtspTrack } from '../../../../src/providers/rtsp-intake/track.ts';
import { rtp } from '../../../support/media/camera-media.ts';

/** Counts the tracks that it is asked for. */
class CountingClock extends RtpClock {
  tracks = 0;

  override track(clockRate: number, leads: boolean): RtpTrackClock {
    this.tracks++;
    return super.track(clockRate, leads);
  }
}

for (const order of ['97 96', '96 97']) {
  test(`however many packets come of a form that is refused, it is tried once: ${order}`, (t) => {
    const faults = new FaultLog(pino({ level: 'silent' }));
    t.teardown(() => faults.close());
    const { media } = readDescription(
      [
        'v=0',
        `m=video 0 RTP/AVP ${order}`,
        'a=rtpmap:96 H264/90000',
        'a=rtpmap:97 H264/90000',
        'a=fmtp:97 packetization-mode=2',
        '',
      ].join('\r\n'),
    );
    const clock = new CountingClock(false);
    const [described] = media;
    if (described === undefined) return t.fail();
    const track = new RtspTrack({
      media: described,
      id: 0,
      waitMs: 0,
      clock,
      faults,
      onEvent: () => {},
      onLost: () => {},
    });
    for (let i = 0; i < 100; i++) track.push(parseRtp(rtp(97, i, i * 3600, Buffer.alloc(20), true, 1)), i * 40);
    t.is(clock.tracks, 2);
  });
}
