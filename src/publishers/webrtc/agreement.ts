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

/** What is agreed with a viewer. */
export interface Agreement {
  readonly selection: Selection;
  readonly plans: readonly MediaPlan[];
}
