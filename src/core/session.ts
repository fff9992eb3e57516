import type { Flow, PublisherKind } from './counters.ts';

/** One viewer of one output stream, whatever the protocol. */
export interface Session {
  /** Unique within its output stream. */
  readonly id: string;
  readonly kind: PublisherKind;
  readonly createdTime: number;
  readonly out: Flow;
  /** Disconnects the viewer and keeps it out as long as its URL names this session. */
  kick(): void;
}
