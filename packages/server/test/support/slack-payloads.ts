/** Bodies as clients of Slack's incoming webhooks send them, recorded from the programs themselves. */

/** Alertmanager 0.25.0 with its default template. */
export const ALERTMANAGER_DEFAULT = `{"channel":"#alerts","username":"Alertmanager","attachments":[{"title":"[FIRING:1]  (HighLatency api-1:9090 critical)","title_link":"http://alertmanager.example.com/#/alerts?receiver=slack","text":"","fallback":"[FIRING:1]  (HighLatency api-1:9090 critical) | http://alertmanager.example.com/#/alerts?receiver=slack","callback_id":"","footer":"","color":"danger","mrkdwn_in":["fallback","pretext","text"]}]}
`;

/** Alertmanager 0.25.0 with templates for pretext, text, fields, an action and a footer. */
export const ALERTMANAGER_CUSTOM =
  String.raw`{"channel":"#alerts","username":"Alertmanager","attachments":[{"title":"[RESOLVED]  (HighLatency api-1:9090 critical)","title_link":"http://alertmanager.example.com/#/alerts?receiver=slack","pretext":"*resolved* on \u003chttps://grafana.example.com|Grafana\u003e","text":"*Summary:* p99 over 2s \u003c1m\u003e \u0026 rising\n` +
  String.raw`\u0060api-1:9090\u0060 \u0026 ask @alice_oncall_\n","fallback":"[RESOLVED]  (HighLatency api-1:9090 critical) | http://alertmanager.example.com/#/alerts?receiver=slack","callback_id":"","fields":[{"title":"Severity","value":"critical","short":true},{"title":"Instances","value":"1","short":false}],"actions":[{"type":"button","text":"Runbook :book:","url":"https://runbooks.example.com/high_latency?a=1\u0026b=(2)"}],"footer":"cluster eu-1","color":"good","mrkdwn_in":["fallback","pretext","text"]}]}
`;

/** @slack/webhook 7.2.0: `send("…")`. */
export const SLACK_WEBHOOK_TEXT =
  '{"username":"deploy","icon_emoji":":rocket:","text":"Hello *world* <https://example.com|there>"}';

/** @slack/webhook 7.2.0: `send({ text, blocks, attachments, unfurl_links })`. */
export const SLACK_WEBHOOK_BLOCKS =
  '{"username":"deploy","icon_emoji":":rocket:","text":"fallback","blocks":[{"type":"header","text":{"type":"plain_text","text":"Deploy finished","emoji":true}},{"type":"section","text":{"type":"mrkdwn","text":"*api* is live"}}],"attachments":[{"color":"#36a64f","fallback":"plain","fields":[{"title":"Env","value":"prod","short":true}],"ts":"123456789"}],"unfurl_links":false}';
