import test from 'ava';
import { captionMembers, captionsOf, withCaptions } from '../../../../../src/publishers/hls/master/captions.ts';
import { subtitleTrack } from '../../../../support/media/packets.ts';

const listed = (channels: readonly string[], carried = true) => ({
  services: { carried, channels },
  trackOf: (channel: string) =>
    channel === 'CC3' ? undefined : subtitleTrack({ publicName: 'English', language: 'en' }),
});

test('channels of captions with one label have names of their own, and a player selects one of a language by itself', (t) => {
  const text = captionMembers(listed(['CC1', 'CC3', 'SERVICE1']));
  t.deepEqual(
    text.split('\n').map((line) => line.replace('#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="captions",', '')),
    [
      'NAME="English",DEFAULT=NO,AUTOSELECT=YES,LANGUAGE="en",INSTREAM-ID="CC1"',
      'NAME="CC3",DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID="CC3"',
      'NAME="English (SERVICE1)",DEFAULT=NO,AUTOSELECT=NO,LANGUAGE="en",INSTREAM-ID="SERVICE1"',
      '',
    ],
  );
});

test('variants have a group of captions, NONE, or nothing as long as some may come', (t) => {
  t.is(captionsOf(listed(['CC1']), true), ',CLOSED-CAPTIONS="captions"');
  t.is(captionsOf(listed([], false), true), ',CLOSED-CAPTIONS=NONE');
  t.is(captionsOf(listed([], false), false), '');
  t.is(captionsOf(listed([]), true), '');
  t.is(captionMembers(listed([])), '');
});

test('services of CEA-708 need version 7 (RFC 8216bis, 8)', (t) => {
  t.is(withCaptions(3, listed(['CC1'])), 3);
  t.is(withCaptions(3, listed(['CC1', 'SERVICE1'])), 7);
  t.is(withCaptions(9, listed(['SERVICE1'])), 9);
});
