import { Histogram } from '../../lib/histogram.ts';

export class StoreCounts {
  /** Seconds until the answers of Redis. */
  readonly answers = new Histogram();
  unanswered = 0;
  readonly beats = { taken: 0, missed: 0 };

  readonly command = (seconds: number | undefined): void => {
    if (seconds === undefined) this.unanswered++;
    else this.answers.add(seconds);
  };

  readonly beat = (taken: boolean): void => {
    this.beats[taken ? 'taken' : 'missed']++;
  };
}
