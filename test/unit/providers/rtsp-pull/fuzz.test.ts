import type { Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import test from 'ava';
import { pino } from 'pino';
import { FaultLog } from '../../../../src/log/log.ts';
import { RtspClient } from '../../../../src/protocols/rtsp/client.ts';
import { RtspError } from '../../../../src/protocols/rtsp/error.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import { PullError } from '../../../../src/providers/pull/error.ts';
import { RtspIngest } from '../../../../src/providers/rtsp-intake/ingest.ts';
import { isTakenTrack } from '../../../../src/providers/rtsp-intake/track-source.ts';
import { mutate } from '../../../soak/mutate.ts';
import { Random } from '../../../soak/random.ts';
import { CAMERA_SDP } from '../../../support/rtsp/fake-camera.ts';
import { rtspConversation } from '../../../support/rtsp/rtsp-conversation.ts';

/** What became of a conversation. @param internal takes errors that are ours */
async function converse(
  answers: readonly Buffer[],
  media: readonly Buffer[],
  internal: unknown[],
): Promise<'played' | 'refused'> {
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const [near, far] = duplexPair();
  far.on('error', () => {});
  const asked = answers.values();
  // an answer to each request; what is broken stays unanswered, and then the server hangs up
  far.on('data', () => {
    const { value, done } = asked.next();
    if (done !== true) setImmediate(() => far.write(value));
  });
  let ingest: RtspIngest | undefined;
  let client: RtspClient | undefined;
  const late = setTimeout(() => far.end(), 50);
  try {
    client = await RtspClient.connect('rtsp://user:pass@127.0.0.1/live?transport=tcp', {
      dial: () => Promise.resolve(near as unknown as Socket),
      checkUdp: () => Promise.resolve(),
      wants: isTakenTrack,
      signal: new AbortController().signal,
    });
    await client.play({
      begin: (tracks, transport) => {
        ingest = new RtspIngest({
          media: tracks,
          transport,
          clock: new LocalClock(),
          ignoresReports: true,
          silenceMs: 0,
          log,
          faults,
          sink: { setTracks: () => {}, write: () => {}, lost: () => {}, trouble: () => {} },
          report: (track, data) => client?.report(track, data),
          onEnd: () => {},
        });
      },
      ignored: () => {},
      start: (track, time) => ingest?.start(track, time),
      rtp: (track, data) => ingest?.rtp(track, data),
      rtcp: (track, data) => ingest?.rtcp(track, data),
      received: () => {},
      unexpectedSource: () => {},
      garbage: () => {},
      end: () => {},
      fault: (error) => internal.push(error),
    });
    for (const piece of media) far.write(piece);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    return 'played';
  } catch (error) {
    if (error instanceof RtspError || error instanceof PullError) return 'refused';
    throw error;
  } finally {
    clearTimeout(late);
    ingest?.close();
    client?.close();
    faults.close();
    far.destroy();
    near.destroy();
  }
}

test('broken answers and packets of an RTSP server are played or rejected', async (t) => {
  const random = new Random(41);
  const { answers, media } = rtspConversation(CAMERA_SDP);
  const outcomes = { played: 0, refused: 0 };
  const internal: unknown[] = [];
  for (let run = 0; run < 400; run++) {
    const broken = random.below(answers.length + 6);
    const said = answers.map((answer, i) => (i === broken ? mutate(answer, random, answer) : answer));
    const sent = media.map((piece) => (random.chance(0.3) ? mutate(piece, random, piece) : Buffer.from(piece)));
    outcomes[await converse(said, sent, internal)]++;
  }
  t.deepEqual(internal, []);
  t.true(outcomes.played > 100 && outcomes.refused > 20, JSON.stringify(outcomes));
});
