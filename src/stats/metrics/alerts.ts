import { counter, type Family } from './family.ts';

export interface AlertCounts {
  /** Alerts raised so far, by code. */
  readonly raised: ReadonlyMap<string, number>;
  /** Alerts to the server of `<Alert>` that were given up so far. */
  readonly undelivered: () => number;
}

export function alertFamilies({ raised, undelivered }: AlertCounts): Family[] {
  return [
    counter('kiln_alerts_total', 'Alerts that were raised, by code, whether or not they are sent anywhere.', () =>
      Array.from(raised, ([code, value]) => ({ labels: { code }, value })),
    ),
    counter(
      'kiln_alerts_undelivered_total',
      'Alerts that the server of Alert/Url never got: it refused them, or was away while too many waited.',
      undelivered,
    ),
  ];
}
