import Type from 'typebox';
import { definePeerCall } from '../peers/peer-call.ts';
import { StreamsAnswer } from './streams.ts';

/** Names in one call. */
export const MAX_NAMES = 500;

/** Selects streams that can be played by `serves`. */
const Vhost = {
  vhost: Type.String(),
  serves: Type.Array(Type.Union([Type.Literal('llhls'), Type.Literal('webrtc')]), { maxItems: 2 }),
};

/** The live streams of a virtual host on one node. */
export const LIVE_STREAMS = definePeerCall('live/list', Type.Object(Vhost), StreamsAnswer);

/** Asks for the streams of some names. */
export const NAMED_STREAMS = definePeerCall(
  'live/named',
  Type.Object({
    ...Vhost,
    names: Type.Array(Type.Object({ app: Type.String(), stream: Type.String() }), { maxItems: MAX_NAMES }),
  }),
  StreamsAnswer,
);
