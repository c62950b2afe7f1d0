// Figure of the benchmark: latencies by percentile as SVG, as `eddy bench shm --svg` draws them.
package io.eddy.shm;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A logarithmic plot with one line for each carrier. One thread. */
final class BenchFigure {
    private static final String[] COLOURS = {"#0f766e", "#b45309"};
    private static final double LEFT = 80;
    private static final double TOP = 70;
    private static final double WIDTH = 680;
    private static final double HEIGHT = 300;
    /** Axis of percentiles: -log10 of the share above. */
    private static final double DECADES = 5;
    private static final int STEPS = 250;
    private static final double[] PERCENTS = {0, 90, 99, 99.9, 99.99, 99.999};

    private final String title;
    private final String subtitle;
    private final List<String> names = new ArrayList<>();
    private final List<int[]> lines = new ArrayList<>();

    BenchFigure(String title, String subtitle) {
        this.title = title;
        this.subtitle = subtitle;
    }

    /** Adds a line: latencies in nanoseconds, at least one, sorted. At most two lines. */
    void add(String name, int[] sorted) {
        names.add(name);
        lines.add(sorted);
    }

    private static String format(String text, Object... values) {
        return String.format(Locale.ROOT, text, values);
    }

    private static double x(double percent) {
        double above = Math.max(1 - percent / 100, Math.pow(10, -DECADES));
        return LEFT + WIDTH * -Math.log10(above) / DECADES;
    }

    private static String timeText(double us) {
        if (us < 1) {
            return Math.round(us * 1e3) + " ns";
        }
        return us < 1e3 ? Math.round(us) + " µs" : us < 1e6 ? Math.round(us / 1e3) + " ms" : Math.round(us / 1e6) + " s";
    }

    private static int at(int[] sorted, double percent) {
        return sorted[Math.min((int) (percent / 100 * sorted.length), sorted.length - 1)];
    }

    /** The whole file. */
    String svg() {
        double least = lines.stream().mapToInt(each -> each[0]).min().orElseThrow() / 1e3;
        double most = lines.stream().mapToInt(each -> each[each.length - 1]).max().orElseThrow() / 1e3;
        double low = Math.floor(Math.log10(Math.max(least, 0.01)));
        double high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(most, 0.01))));
        StringBuilder out = new StringBuilder(format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"430\""
                + " viewBox=\"0 0 800 430\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\">%n"
                + "<rect width=\"800\" height=\"430\" fill=\"#ffffff\"/>%n"
                + "<text x=\"20\" y=\"28\" font-size=\"17\" font-weight=\"600\" fill=\"#0f172a\">%s</text>%n"
                + "<text x=\"20\" y=\"48\" fill=\"#64748b\">%s</text>%n", title, subtitle));
        for (double decade = low; decade <= high; ++decade) {
            double us = Math.pow(10, decade);
            double y = y(us, low, high);
            out.append(format("<path d=\"M%.0f %.1fH%.0f\" stroke=\"#e2e8f0\"/>%n<text x=\"%.0f\" y=\"%.1f\""
                    + " text-anchor=\"end\" fill=\"#64748b\">%s</text>%n", LEFT, y, LEFT + WIDTH, LEFT - 8, y + 4,
                    timeText(us)));
        }
        for (double percent : PERCENTS) {
            out.append(format("<path d=\"M%1$.1f %2$.0fV%3$.0f\" stroke=\"#e2e8f0\"/>%n<text x=\"%1$.1f\" y=\"%4$.0f\""
                    + " text-anchor=\"middle\" fill=\"#64748b\">%5$s %%</text>%n", x(percent), TOP, TOP + HEIGHT,
                    TOP + HEIGHT + 18, percent == Math.rint(percent) ? format("%.0f", percent) : String.valueOf(percent)));
        }
        for (int i = 0; i < lines.size(); ++i) {
            StringBuilder path = new StringBuilder();
            for (int step = 0; step <= STEPS; ++step) {
                double percent = 100 * (1 - Math.pow(10, -DECADES * step / STEPS));
                path.append(format("%s%.1f %.1f", path.length() == 0 ? "M" : "L", x(percent),
                        y(at(lines.get(i), percent) / 1e3, low, high)));
            }
            out.append(format("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>%n", path, COLOURS[i]));
            out.append(format("<text x=\"%.0f\" y=\"%d\" font-weight=\"600\" fill=\"%s\">%s</text>%n", LEFT + 10,
                    (int) TOP + 16 + 18 * i, COLOURS[i], names.get(i)));
        }
        out.append(format("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\" fill=\"#64748b\">percentile of %d round"
                + " trips</text>%n</svg>%n", LEFT + WIDTH / 2, TOP + HEIGHT + 40, lines.get(0).length));
        return out.toString();
    }

    private static double y(double us, double low, double high) {
        return TOP + HEIGHT * (1 - (Math.log10(Math.max(us, Math.pow(10, low))) - low) / (high - low));
    }
}
