import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { Report } from "../records.ts";
import { text, uuid } from "../text/fields.ts";

const sentence = (max: number) =>
  text(1, max).refine((value) => /\S/.test(value), { message: "must not be only white space" });

export const reportMessage = operation({
  name: "reportMessage",
  socket: "messages.report",
  throttles: ["reports"],
  summary:
    "Reports a message to the operators. Reporting a message again succeeds and changes nothing.",
  input: z.object({
    message_id: uuid,
    reason: sentence(1000).meta({ description: "What is wrong with it, for the operators." }),
  }),
  errors: ["forbidden", "not_found"],
});

export const getReports = operation({
  name: "getReports",
  socket: "operators.reports",
  summary: "Lists reported messages, newest report first.",
  access: "operator",
  input: z.object({
    resolved: z
      .boolean()
      .optional()
      .meta({ description: "Lists only resolved reports, or only open ones." }),
    cursor,
    limit,
  }),
  output: page(Report),
});

export const resolveReport = operation({
  name: "resolveReport",
  socket: "operators.resolve_report",
  summary: "Marks an open report as resolved.",
  access: "operator",
  input: z.object({
    report_id: uuid,
    note: sentence(1000).optional().meta({ description: "What was done, for other operators." }),
  }),
  output: Report,
  errors: ["not_found", "conflict"],
});
