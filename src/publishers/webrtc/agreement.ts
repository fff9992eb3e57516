import type { types } from 'mediasoup';
import type { RtpCodec } from '../../webrtc/codecs.ts';
import type { Selection } from './selection.ts';

/** How a track is sent to a viewer. */
export interface MediaPlan {
  readonly kind: 'video' | 'audio';
  readonly mid: string;
  readonly codec: RtpCodec;
  readonly extensions: readonly types.RtpHeaderExtension[];
}

/** How events are sent to a viewer who offers a data channel. */
export interface EventPlan {
  readonly mid: string;
  readonly protocol: string;
  /** Bytes of the largest message that the viewer takes. */
  readonly maxMessageSize: number;
}

export interface Agreement {
  readonly events?: EventPlan;
  readonly selection: Selection;
  readonly plans: readonly MediaPlan[];
}
