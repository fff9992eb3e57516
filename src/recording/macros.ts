/** Values of the macros of a path (docs/compatibility.md#recordings-pushes-dumps). */
export interface PathValues {
  readonly transactionId: string;
  readonly id: string;
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  /** Name of the input stream. */
  readonly source: string;
  readonly sequence: number;
  readonly start: Date;
  readonly end: Date;
}

/** Replaces macros by values. Unknown macros stay. */
export function expandPath(template: string, values: PathValues): string {
  return template.replaceAll(/\$\{(\w+)(?::([^}]*))?\}/g, (whole, name: string, format?: string) => {
    switch (name) {
      case 'TransactionId':
        return values.transactionId;
      case 'Id':
        return values.id;
      case 'VirtualHost':
        return values.vhost;
      case 'Application':
        return values.app;
      case 'Stream':
        return values.stream;
      case 'SourceStream':
        return values.source;
      case 'Sequence':
        return String(values.sequence);
      case 'StartTime':
        return formatted(values.start, format);
      case 'EndTime':
        return formatted(values.end, format);
      default:
        return whole;
    }
  });
}

/** Formats local time by the tokens YYYY MM DD hh mm ss. */
function formatted(time: Date, format = 'YYYYMMDDhhmmss'): string {
  const tokens: Record<string, number> = {
    YYYY: time.getFullYear(),
    MM: time.getMonth() + 1,
    DD: time.getDate(),
    hh: time.getHours(),
    mm: time.getMinutes(),
    ss: time.getSeconds(),
  };
  return format.replaceAll(/YYYY|MM|DD|hh|mm|ss/g, (token) => String(tokens[token]).padStart(token.length, '0'));
}
