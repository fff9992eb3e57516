import test from 'ava';
import { kilnError, type KilnError } from '../../../src/errors.ts';
import { rejectionOf } from '../../../src/protocols/srt/rejection.ts';
import { refusalStatus } from '../../../src/providers/rtmp/request.ts';
import { errorFields } from '../../../src/webrtc/signalling/connection.ts';

/** Every refusal, and what each protocol answers: HTTP is WHIP, WHEP, LL-HLS, HLS and thumbnails. */
const TABLE: readonly (readonly [
  KilnError,
  http: number,
  srt: number,
  webSocket: number,
  rtmp: 'BadName' | 'Rejected' | 'Failed',
])[] = [
  [kilnError('vhostNotFound', 'x'), 404, 1404, 404, 'Failed'],
  [kilnError('applicationNotFound', 'v', 'a'), 404, 1404, 404, 'Failed'],
  [kilnError('streamNotFound', '#v#a/s'), 404, 1404, 404, 'Failed'],
  [kilnError('fileNotFound'), 404, 1404, 404, 'Failed'],
  [kilnError('providerDisabled', 'RTMP', '#v#a'), 403, 1403, 404, 'Failed'],
  [kilnError('accessDenied'), 401, 1401, 404, 'Rejected'],
  [kilnError('nodeDraining'), 503, 1503, 503, 'Failed'],
  [kilnError('tooManyConnections', 1), 503, 1402, 503, 'Failed'],
  [kilnError('tooManyApplications', 1), 503, 1402, 503, 'Failed'],
  [kilnError('tooManyWaiting'), 503, 1503, 503, 'Failed'],
  [kilnError('streamExists'), 409, 1409, 404, 'BadName'],
  [kilnError('streamNameInvalid', 'a/b'), 400, 1400, 404, 'BadName'],
  [kilnError('streamNameUnconfirmed'), 503, 1503, 503, 'Failed'],
  [kilnError('streamEnded'), 403, 1403, 404, 'Failed'],
  [kilnError('sessionExists', 'me'), 409, 1409, 404, 'Failed'],
  [kilnError('sessionRefused', 'me'), 403, 1403, 403, 'Failed'],
  [kilnError('nothingPlayable'), 406, 1406, 404, 'Failed'],
  [kilnError('mediaUnavailable'), 503, 1503, 503, 'Failed'],
];

for (const [error, http, srt, webSocket, rtmp] of TABLE) {
  test(`${error.code} in every protocol`, (t) => {
    t.is(error.status, http);
    t.is(rejectionOf(error), srt);
    t.is(errorFields(error).code, webSocket);
    t.is(refusalStatus(error), `NetStream.Publish.${rtmp}`);
  });
}
